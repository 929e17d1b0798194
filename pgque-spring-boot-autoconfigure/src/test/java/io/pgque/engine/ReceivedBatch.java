package io.pgque.engine;

import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

import org.jspecify.annotations.Nullable;

/**
 * A batch as a worker in a race holds it.
 *
 * @param id batch id
 * @param events ids of its events, in the order they came
 */
record ReceivedBatch(long id, List<Long> events) {

	/**
	 * Receive.
	 * @param call a call of one of the engine's functions that receive
	 * @return null if there is nothing to do
	 */
	static @Nullable ReceivedBatch receive(Session session, String call, Object... arguments) throws SQLException {
		List<Long> events = new ArrayList<>();
		long batch = 0;
		try (PreparedStatement statement = session.connection()
			.prepareStatement("select msg_id, batch_id from " + call)) {
			for (int i = 0; i < arguments.length; i++) {
				statement.setObject(i + 1, arguments[i]);
			}
			try (ResultSet rows = statement.executeQuery()) {
				while (rows.next()) {
					events.add(rows.getLong(1));
					batch = rows.getLong(2);
				}
			}
		}
		return events.isEmpty() ? null : new ReceivedBatch(batch, events);
	}

	/**
	 * Settle.
	 * @param upTo the last event that is settled, null for all of them
	 * @param failed events given back, due at once
	 * @return whether the batch was still open
	 */
	boolean settle(Session session, @Nullable Long upTo, List<Long> failed) throws SQLException {
		return Boolean.TRUE.equals(session.value(Boolean.class,
				"select settled from pgque.settle(%d, %s, %s, %s, %s, %s)".formatted(this.id, upTo,
						array(failed, "bigint"), array(Collections.nCopies(failed.size(), "'0'"), "interval"),
						array(Collections.nCopies(failed.size(), "'why'"), "text"),
						array(Collections.nCopies(failed.size(), false), "boolean"))));
	}

	/**
	 * Settle the batch or the first part of it, with failures, in a transaction.
	 * @return events that are done with; none if the batch was not open any more
	 */
	List<Long> settleAtRandom(Session session, Random random) throws SQLException {
		Long upTo = (random.nextInt(4) == 0) ? this.events.get(random.nextInt(this.events.size())) : null;
		List<Long> part = this.events.stream().filter((id) -> upTo == null || id <= upTo).toList();
		List<Long> failed = part.stream().filter((id) -> random.nextInt(10) == 0).toList();
		boolean settled = settle(session, upTo, failed);
		session.commit();
		return settled ? part.stream().filter((id) -> !failed.contains(id)).toList() : List.of();
	}

	private static String array(List<?> values, String type) {
		return "array" + values + "::" + type + "[]";
	}

}
