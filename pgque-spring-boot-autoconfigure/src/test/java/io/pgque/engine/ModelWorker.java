package io.pgque.engine;

import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

import org.jspecify.annotations.Nullable;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * A session of an {@link EngineModel} that receives and settles for a consumer, in
 * transactions of many steps or of one statement.
 */
final class ModelWorker {

	private final EngineModel model;

	private final ModelConsumer consumer;

	private final Session session;

	private final String member;

	private final boolean transactional;

	/**
	 * Takes back what the open transaction changed in the model, newest last.
	 */
	private final List<Runnable> undo = new ArrayList<>();

	private @Nullable ReceivedBatch inHand;

	ModelWorker(EngineModel model, ModelConsumer consumer, Session session, String member, boolean transactional) {
		this.model = model;
		this.consumer = consumer;
		this.session = session;
		this.member = member;
		this.transactional = transactional;
	}

	String step(Random random) throws SQLException {
		int choice = random.nextInt(100);
		if (this.transactional && choice < 20) {
			return commit();
		}
		if (this.transactional && choice < 27) {
			return rollback();
		}
		ReceivedBatch batch = this.inHand;
		String done = (batch == null || choice < 45) ? receive(random) : work(batch, random, choice);
		if (!this.transactional) {
			commit();
		}
		return done;
	}

	private String work(ReceivedBatch batch, Random random, int choice) throws SQLException {
		if (choice < 55) {
			return nack(batch, random);
		}
		if (choice < 65) {
			return ack(batch);
		}
		return settle(batch, random);
	}

	String commit() throws SQLException {
		this.session.commit();
		this.undo.clear();
		return "commit";
	}

	String rollback() throws SQLException {
		this.session.rollback();
		this.inHand = null;
		Collections.reverse(this.undo);
		this.undo.forEach(Runnable::run);
		this.undo.clear();
		return "rollback";
	}

	private String receive(Random random) throws SQLException {
		int rows = 1 + random.nextInt(8);
		int bytes = 1 + random.nextInt(20);
		if (!this.consumer.isGroup()) {
			return (random.nextInt(4) == 0) ? receive("pgque.receive(?, ?, null)", this.consumer.name())
					: receive("pgque.receive_batch(?, ?, " + rows + ", " + bytes + ")", this.consumer.name());
		}
		String dead = (random.nextInt(5) == 0) ? "'0'" : "null";
		String names = "pgque.receive_coop%s(?, '" + this.consumer.name() + "', ?, ";
		return (random.nextInt(4) == 0) ? receive(names.formatted("") + "null, " + dead + ")", this.member)
				: receive(names.formatted("_batch") + rows + ", " + bytes + ", " + dead + ")", this.member);
	}

	/**
	 * Receive a batch with all its pages.
	 */
	private String receive(String call, String name) throws SQLException {
		List<Long> events = new ArrayList<>();
		long batch = read("select *" + (call.contains("_batch") ? "" : ", false") + " from " + call, events,
				this.model.queue(), name);
		assertThat(events).as("in the order of their ids").isSorted().doesNotHaveDuplicates();
		assertThat(this.model.committed()).as("neither open nor rolled back").containsAll(events);
		this.inHand = events.isEmpty() ? null : new ReceivedBatch(batch, events);
		for (ModelWorker other : this.consumer.workers()) {
			if (other != this && this.inHand != null) {
				compare(this.inHand, other.inHand);
			}
		}
		return call + " " + name + " -> " + this.inHand;
	}

	private void compare(ReceivedBatch mine, @Nullable ReceivedBatch other) {
		if (other == null) {
			return;
		}
		if (other.id() == mine.id()) {
			assertThat(mine.events()).as("the same until it is settled").isEqualTo(other.events());
		}
		else if (!Collections.disjoint(mine.events(), other.events())) {
			// Taken over, or the rest of it.
			this.consumer.close(other.id(), this.undo);
		}
	}

	private long read(String sql, List<Long> events, Object... arguments) throws SQLException {
		long batch = 0;
		boolean more = false;
		try (PreparedStatement statement = this.session.connection().prepareStatement(sql)) {
			for (int i = 0; i < arguments.length; i++) {
				statement.setObject(i + 1, arguments[i]);
			}
			try (ResultSet rows = statement.executeQuery()) {
				while (rows.next()) {
					this.consumer.checkDelivery(rows.getLong(1), rows.getInt(5));
					events.add(rows.getLong(1));
					batch = rows.getLong(2);
					more = rows.getBoolean(11);
				}
			}
		}
		if (more) {
			assertThat(
					read("select * from pgque.receive_page(?, ?, 3, 5)", events, batch, events.get(events.size() - 1)))
				.as("of the next page")
				.isEqualTo(batch);
		}
		return batch;
	}

	/**
	 * Give one message back, and go on with the batch.
	 */
	private String nack(ReceivedBatch batch, Random random) throws SQLException {
		long event = batch.events().get(random.nextInt(batch.events().size()));
		if (this.consumer.isClosed(batch.id())) {
			return "";
		}
		this.session.value(Integer.class, "select pgque.nack(?, row(?, null, null, null, null, null, null, null, null,"
				+ " null)::pgque.message, '" + delay(random) + "')", batch.id(), event);
		if (!this.consumer.isEarly(event)) {
			this.consumer.fail(event, false, this.undo);
			this.consumer.failEarly(event, this.undo);
		}
		return "nack " + event + " of " + batch.id();
	}

	private String ack(ReceivedBatch batch) throws SQLException {
		Integer acked = this.session.value(Integer.class, "select pgque.ack(?)", batch.id());
		assertThat(acked).isEqualTo(this.consumer.isClosed(batch.id()) ? 0 : 1);
		if (!this.consumer.isClosed(batch.id())) {
			end(batch, batch.events(), List.of());
		}
		this.inHand = null;
		return "ack " + batch.id() + " -> " + acked;
	}

	private String settle(ReceivedBatch batch, Random random) throws SQLException {
		boolean whole = random.nextInt(3) > 0 || batch.events().stream().anyMatch(this.consumer::isEarly);
		Long upTo = whole ? null : batch.events().get(random.nextInt(batch.events().size()));
		List<Long> part = batch.events().stream().filter((event) -> upTo == null || event <= upTo).toList();
		List<Long> failed = part.stream()
			.filter((event) -> random.nextInt(4) == 0 && !this.consumer.isEarly(event))
			.toList();
		List<Boolean> dead = failed.stream().map((event) -> random.nextInt(10) == 0).toList();
		List<Object> result = call(batch.id(), upTo, failed, dead, delay(random));
		if (this.consumer.isClosed(batch.id())) {
			assertThat(result).containsExactly(false, 0, "{}");
		}
		else {
			List<Long> givenUp = new ArrayList<>();
			for (int i = 0; i < failed.size(); i++) {
				if (this.consumer.fail(failed.get(i), dead.get(i), this.undo)) {
					givenUp.add(failed.get(i));
				}
			}
			assertThat(result).containsExactly(true, failed.size() - givenUp.size(),
					givenUp.toString().replace('[', '{').replace(']', '}').replace(" ", ""));
			end(batch, part, failed);
		}
		this.inHand = null;
		return "settle " + batch.id() + " up to " + upTo + ", failed " + failed + " dead " + dead + " -> " + result;
	}

	private List<Object> call(long batch, @Nullable Long upTo, List<Long> failed, List<Boolean> dead, String delay)
			throws SQLException {
		String arrays = "'%s', array_fill('%s'::interval, array[%d]), array_fill('why'::text, array[%3$d]), '%s'"
			.formatted(literal(failed), delay, failed.size(), literal(dead));
		try (PreparedStatement statement = this.session.connection()
			.prepareStatement("select settled, retried, dead_ids::text from pgque.settle(?, ?, " + arrays + ")")) {
			statement.setLong(1, batch);
			statement.setObject(2, upTo, java.sql.Types.BIGINT);
			try (ResultSet row = statement.executeQuery()) {
				row.next();
				return List.of(row.getBoolean(1), row.getInt(2), row.getString(3));
			}
		}
	}

	private static String literal(List<?> values) {
		return values.toString().replace('[', '{').replace(']', '}');
	}

	private static String delay(Random random) {
		return random.nextBoolean() ? "0" : "1 hour";
	}

	/**
	 * Note that a batch is settled, up to its last event or a part of it.
	 */
	private void end(ReceivedBatch batch, List<Long> part, List<Long> failed) {
		this.consumer.close(batch.id(), this.undo);
		for (long event : part) {
			if (this.consumer.isEarly(event)) {
				this.consumer.endEarly(event, this.undo);
			}
			else if (!failed.contains(event)) {
				this.consumer.finish(event, this.undo);
			}
		}
	}

	/**
	 * Receive and settle one batch without failures, once nobody else is at work.
	 * @return whether there was one
	 */
	boolean drain() throws SQLException {
		if (this.consumer.isGroup()) {
			receive("pgque.receive_coop_batch(?, '" + this.consumer.name() + "', ?, 100, 10000, '0')", this.member);
		}
		else {
			receive("pgque.receive_batch(?, ?, 100, 10000)", this.consumer.name());
		}
		ReceivedBatch batch = this.inHand;
		if (batch != null) {
			ack(batch);
		}
		commit();
		return batch != null;
	}

}
