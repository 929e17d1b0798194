package io.pgque.client;

import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

/**
 * The log engine's SQL calls by which later messages of a key wait for one that has
 * failed. Each method sends one statement, as those of {@link PgqueClient} do.
 *
 * @since 0.2.0
 * @see PgqueClient#holding()
 */
public final class HoldingClient {

	private final Statements statements;

	HoldingClient(Statements statements) {
		this.statements = statements;
	}

	/**
	 * Ask where messages stand in the order of their keys.
	 * @param batchId the batch id
	 * @param keys the keys of the messages, by message id
	 * @return the places of those whose keys have any; none when no message is to come
	 * again
	 * @throws io.pgque.PgqueException when the batch is not open any more
	 */
	public List<KeyPlace> places(long batchId, Map<Long, String> keys) {
		return this.statements.query(null,
				"select msg_id, place, after from pgque.key_places(?, ?::bigint[], ?::text[])", (statement) -> {
					statement.setLong(1, batchId);
					statement.setArray(2, statement.getConnection().createArrayOf("int8", keys.keySet().toArray()));
					statement.setArray(3, statement.getConnection().createArrayOf("text", keys.values().toArray()));
				}, Rows::keyPlaces);
	}

	/**
	 * Settle a batch, or its first part, in one statement, and keep the order of keys.
	 * @param batchId the batch id
	 * @param upTo the id of the last event that is done, or {@code null} for the whole
	 * batch; what lies beyond comes again under a new batch id, not counted as failed
	 * @param nacks the events that failed
	 * @param held the ids of those that are held back: they come again with the one that
	 * they wait for, or when those between are done, not counted as failed
	 * @param placed the ids of the others that have a place; those that don't come again
	 * lose it
	 * @return what was done; events that are held back aren't among those retried
	 */
	public SettleResult settle(long batchId, @Nullable Long upTo, List<Nack> nacks, List<Long> held,
			List<Long> placed) {
		NackArrays arrays = NackArrays.of(nacks);
		return this.statements.query(null,
				"select settled, retried, dead_ids from pgque.settle_holding(?, ?, ?::bigint[], ?::text[]::interval[],"
						+ " ?::text[], ?::boolean[], ?::bigint[], ?::bigint[])",
				(statement) -> {
					statement.setLong(1, batchId);
					statement.setObject(2, upTo, java.sql.Types.BIGINT);
					arrays.bind(statement, 3);
					statement.setArray(7, statement.getConnection().createArrayOf("int8", held.toArray()));
					statement.setArray(8, statement.getConnection().createArrayOf("int8", placed.toArray()));
				}, Rows::settled);
	}

}
