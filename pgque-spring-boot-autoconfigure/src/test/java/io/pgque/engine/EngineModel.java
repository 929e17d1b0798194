package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;

import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Random steps of several sessions on one queue, one after another but with their
 * transactions interleaved, each checked against what the queue has to do. A step that
 * would have to wait for another session is given up, and its transaction rolled back, so
 * that a seed always makes the same run.
 */
final class EngineModel implements AutoCloseable {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	private static final String LOCK_NOT_AVAILABLE = "55P03";

	private static final int LATE_CONSUMERS = 2;

	private final TestDatabase database;

	private final Random random;

	private final String queue = "model-" + NUMBER.incrementAndGet();

	private final List<Session> sessions = new ArrayList<>();

	private final Session maintenance;

	private final List<ModelSender> senders = new ArrayList<>();

	private final List<ModelConsumer> consumers = new ArrayList<>();

	private final Set<Long> committed = new TreeSet<>();

	private final List<String> log = new ArrayList<>();

	EngineModel(TestDatabase database, long seed) throws SQLException {
		this.database = database;
		this.random = new Random(seed);
		this.maintenance = Session.autoCommit(database);
		this.sessions.add(this.maintenance);
		run("select pgque.create_queue('%s')");
		run("select pgque.set_queue_config('%s', 'max_retries', '" + ModelConsumer.MAX_RETRIES + "')");
		run("select pgque.set_queue_config('%s', 'rotation_period', '1 us')");
		run("set lock_timeout = '20 ms'");
		run("update pgque_internal.ring set ring_min_bytes = 0, ring_min_age = '0'");
		run("alter function pgque_internal.turn_ring set lock_timeout = '3 ms'");
		subscribe("first", false);
		subscribe("group", true);
		for (int i = 0; i < 3; i++) {
			this.senders.add(new ModelSender(this, transactionalSession()));
		}
	}

	String queue() {
		return this.queue;
	}

	Set<Long> committed() {
		return this.committed;
	}

	/**
	 * Return the last steps.
	 */
	List<String> log() {
		return this.log.subList(Math.max(0, this.log.size() - 100), this.log.size());
	}

	/**
	 * Note that events are committed: whoever is subscribed now has to get them.
	 */
	void committed(List<Long> events) {
		this.committed.addAll(events);
		this.consumers.forEach((consumer) -> consumer.require(events));
	}

	void run(int steps) throws SQLException {
		for (int i = 0; i < steps; i++) {
			int choice = this.random.nextInt(100);
			if (choice < 36) {
				int number = this.random.nextInt(this.senders.size());
				ModelSender sender = this.senders.get(number);
				step("sender " + number, () -> sender.step(this.random), sender::rollback);
			}
			else if (choice < 76) {
				ModelConsumer consumer = this.consumers.get(this.random.nextInt(this.consumers.size()));
				int number = this.random.nextInt(consumer.workers().size());
				ModelWorker worker = consumer.workers().get(number);
				step(consumer.name() + " " + number, () -> worker.step(this.random), worker::rollback);
			}
			else {
				step("maintenance", this::maintain, () -> "skipped");
			}
		}
	}

	private interface Step {

		String run() throws SQLException;

	}

	private void step(String who, Step work, Step giveUp) throws SQLException {
		try {
			this.log.add(who + ": " + work.run());
		}
		catch (SQLException ex) {
			if (!LOCK_NOT_AVAILABLE.equals(ex.getSQLState())) {
				throw ex;
			}
			this.log.add(who + ": would wait, " + giveUp.run());
		}
	}

	private String maintain() throws SQLException {
		int choice = this.random.nextInt(100);
		if (choice < 32) {
			return "tick_now() -> " + this.maintenance.column(String.class, "select outcome from pgque.tick_now()");
		}
		if (choice < 50) {
			return "tick_now(queue) -> "
					+ this.maintenance.column(String.class, "select outcome from pgque.tick_now(array[?])", this.queue);
		}
		if (choice < 56) {
			run("select pgque.force_next_tick('%s')");
			return "ticker(queue) -> " + this.maintenance.value(Long.class, "select pgque.ticker(?)", this.queue);
		}
		if (choice < 73) {
			return "maint_retry_events() -> "
					+ this.maintenance.value(Integer.class, "select pgque.maint_retry_events()");
		}
		if (choice < 80) {
			makeRetriesDue();
			return "retries are due";
		}
		if (choice < 86) {
			return redeliver();
		}
		if (choice < 89 && this.consumers.size() < 2 + LATE_CONSUMERS) {
			subscribe("late" + this.consumers.size(), false);
			return "subscribe late";
		}
		run("select pgque.maint()");
		return "maint()";
	}

	private void makeRetriesDue() throws SQLException {
		run("update pgque.retry_queue set ev_retry_after = now() - interval '1 second' where ev_queue ="
				+ " (select queue_id from pgque.queue where queue_name = '%s')");
	}

	/**
	 * Redeliver the newest dead letter of a consumer, if it may be.
	 */
	private String redeliver() throws SQLException {
		ModelConsumer consumer = this.consumers.get(this.random.nextInt(this.consumers.size()));
		List<Long> events = this.maintenance.column(Long.class,
				"select ev_id from pgque.dead_letters(?, 100) where consumer_name = ? limit 1", this.queue,
				consumer.name());
		if (events.isEmpty() || consumer.isEarly(events.get(0))) {
			return "nothing to redeliver";
		}
		this.maintenance.value(Long.class, "select pgque.dlq_redeliver(dl_id) from pgque.dead_letters(?, 100)"
				+ " where consumer_name = ? limit 1", this.queue, consumer.name());
		consumer.revive(events.get(0));
		return "redeliver " + events + " to " + consumer.name();
	}

	private void subscribe(String name, boolean group) throws SQLException {
		ModelConsumer consumer = new ModelConsumer(name, group);
		for (int i = 0; i < 2; i++) {
			String member = "m" + i;
			if (group) {
				run("select pgque.register_subconsumer('%s', '" + name + "', '" + member + "')");
			}
			consumer.workers()
				.add(new ModelWorker(this, consumer, transactionalSession(), member, this.random.nextBoolean()));
		}
		if (!group) {
			run("select pgque.subscribe('%s', '" + name + "')");
		}
		this.consumers.add(consumer);
	}

	private Session transactionalSession() throws SQLException {
		Session session = Session.transactional(this.database);
		this.sessions.add(session);
		session.run("set lock_timeout = '20 ms'");
		session.commit();
		return session;
	}

	private void run(String sql) throws SQLException {
		this.maintenance.run(sql.formatted(this.queue));
	}

	/**
	 * End all transactions, deliver all that is left, and check that nothing is missing.
	 */
	void finish() throws SQLException {
		for (ModelSender sender : this.senders) {
			sender.commit();
		}
		for (ModelConsumer consumer : this.consumers) {
			for (ModelWorker worker : consumer.workers()) {
				worker.commit();
			}
		}
		for (int idle = 0; idle < 3; idle++) {
			makeRetriesDue();
			run("select pgque.maint_retry_events()");
			run("select * from pgque.tick_now()");
			run("select pgque.maint()");
			for (ModelConsumer consumer : this.consumers) {
				while (consumer.workers().get(0).drain()) {
					idle = 0;
				}
			}
		}
		this.consumers.forEach(ModelConsumer::checkComplete);
		for (ModelConsumer consumer : this.consumers) {
			assertThat(this.maintenance.column(Long.class,
					"select ev_id from pgque.dead_letters(?, 10000) where consumer_name = ?", this.queue,
					consumer.name()))
				.containsExactlyInAnyOrderElementsOf(consumer.deadLetters());
		}
	}

	@Override
	public void close() throws SQLException {
		for (Session session : this.sessions.subList(1, this.sessions.size())) {
			session.close();
		}
		run("select pgque.drop_queue('%s', true)");
		this.maintenance.close();
	}

}
