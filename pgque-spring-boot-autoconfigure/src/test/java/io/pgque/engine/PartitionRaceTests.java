package io.pgque.engine;

import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.SqlCalls.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Workers of slots that are robbed of them, and whose number changes while they work.
 */
@PgqueDatabase
class PartitionRaceTests {

	private static final String[] KEYS = { "A", "B", "C", "D", "E", "F", "G", "H" };

	private final Set<Long> sent = new ConcurrentSkipListSet<>();

	private final AtomicInteger fenced = new AtomicInteger();

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '1000')", this.queue);
		this.calls.execute("drop table if exists handled; create table handled"
				+ " (n serial, event bigint, key text, retry int4, failed boolean)");
	}

	@Test
	void twelveWorkersClaimOneSlotAtOnce() throws Exception {
		this.calls.row("select pgque.subscribe_slot(?, 'c', 0, 1)", this.queue);
		AtomicInteger number = new AtomicInteger();
		try (Crowd crowd = new Crowd()) {
			List<@Nullable Long> epochs = crowd.atOnce(12, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.value(Long.class, "select pgque.claim_slot(?, 'c', 0, ?)", this.queue,
							"w" + number.incrementAndGet());
				}
			});
			assertThat(epochs).containsOnlyOnce(1L).hasSize(12);
			assertThat(epochs).filteredOn((epoch) -> epoch == null).hasSize(11);
		}
	}

	@Test
	void twelveSessionsSubscribeAllSlotsAtOnce() throws Exception {
		try (Crowd crowd = new Crowd()) {
			List<Integer> made = crowd.atOnce(12, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.value(Integer.class, "select pgque.subscribe_slots(?, 'c', 4)", this.queue);
				}
			});
			assertThat(made).containsOnlyOnce(4).hasSize(12);
			assertThat(made).filteredOn((count) -> count == 0).hasSize(11);
		}
	}

	@Test
	void oneNumberOfSlotsWins() throws Exception {
		AtomicInteger number = new AtomicInteger();
		try (Crowd crowd = new Crowd()) {
			List<Integer> winners = crowd.atOnce(8, () -> {
				int n = 1 + number.getAndIncrement() % 4;
				try (Session session = Session.transactional(this.database)) {
					return attempt(session, () -> session.value(String.class,
							"select pgque.subscribe_slot(?, 'c', 0, ?)::text", this.queue, n)) ? n : 0;
				}
			});
			int n = this.calls.integer("select n from pgque.partition_consumer where queue_id ="
					+ " (select queue_id from pgque.queue where queue_name = ?)", this.queue);
			assertThat(winners).containsOnly(0, n).filteredOn((winner) -> winner == n).hasSize(2);
		}
	}

	@Test
	void slotsMayBeRobbedAndRedividedUnderLoad() throws Exception {
		this.calls.integer("select pgque.subscribe_slots(?, 'c', 2)", this.queue);
		try (Crowd crowd = new Crowd()) {
			for (int i = 0; i < 2; i++) {
				sendKeys(crowd, i);
			}
			for (int i = 0; i < 4; i++) {
				Worker worker = new Worker(i);
				crowd.repeat(worker::work);
			}
			Session maintenance = Session.transactional(this.database);
			crowd.repeat(() -> {
				for (String call : new String[] { "pgque.maint_retry_events()", "pgque.tick_now()", "pgque.maint()" }) {
					maintenance.run("select * from " + call);
					maintenance.commit();
				}
				maintenance.run("update pgque.partition_slot set lease_until = now() where random() < 0.1");
				maintenance.commit();
			});
			try (Session session = Session.transactional(this.database)) {
				for (int n : new int[] { 3, 5, 1, 0, 2 }) {
					boolean[] changed = new boolean[1];
					while (!changed[0]) {
						attempt(session, () -> changed[0] = Boolean.TRUE.equals(session.value(Boolean.class,
								"select pgque.change_partitions(?, 'c', ?)", this.queue, n)));
						session.run("select pg_sleep(0.02)");
						session.commit();
					}
					session.run("select pg_sleep(0.2)");
					session.commit();
				}
			}
			crowd.runFor(0, () -> this.fenced.get() > 0);
		}
		finish();

		assertThat(this.calls.values(Long.class, "select event from handled where not failed order by event"))
			.containsExactlyElementsOf(this.sent);
		assertThat(this.calls.rows("select * from (select key, event, lag(event) over (partition by key order by n)"
				+ " from handled where retry is null) h where event <= lag"))
			.isEmpty();
		assertThat(this.fenced).hasPositiveValue();
	}

	/**
	 * A worker that takes any slot it gets, and commits what it has handled together with
	 * the ack.
	 */
	private final class Worker {

		private final String name;

		private final Random random;

		private final Session session;

		Worker(int number) throws SQLException {
			this.name = "w" + number;
			this.random = new Random(number);
			this.session = Session.transactional(PartitionRaceTests.this.database);
		}

		void work() throws Exception {
			attempt(this.session, () -> {
				List<@Nullable Integer> n = this.session.column(Integer.class,
						"select n from pgque.partition_consumer join pgque.queue using (queue_id) where queue_name = ?",
						PartitionRaceTests.this.queue);
				if (n.isEmpty()) {
					workAsPlainConsumer();
				}
				else {
					workOnSlot(n.get(0), this.random.nextInt(n.get(0)));
				}
			});
		}

		private void workOnSlot(int n, int slot) throws SQLException {
			String queue = PartitionRaceTests.this.queue;
			if (this.session.value(Long.class, "select pgque.claim_slot(?, 'c', ?, ?)", queue, slot,
					this.name) == null) {
				return;
			}
			for (int i = 0; i < 3; i++) {
				ReceivedBatch batch = ReceivedBatch.receive(this.session,
						"pgque.receive_partitioned(?, 'c', ?, ?, ?, 100000)", queue, slot, n, this.name);
				if (batch == null) {
					return;
				}
				if (this.random.nextBoolean()) {
					this.session.commit();
				}
				for (long event : batch.events()) {
					boolean failed = this.random.nextInt(10) == 0;
					record(batch.id(), event, failed);
					if (failed) {
						this.session.value(Integer.class,
								"select pgque.nack_partitioned(?, 'c', ?, ?, ?, row(?, null, null, null, null, null,"
										+ " null, null, null, null)::pgque.message, '0')",
								queue, slot, n, this.name, event);
					}
				}
				Integer acked = this.session.value(Integer.class, "select pgque.ack_partitioned(?, 'c', ?, ?, ?, ?)",
						queue, slot, n, this.name, batch.id());
				if (Integer.valueOf(1).equals(acked)) {
					this.session.commit();
				}
				else {
					this.session.rollback();
				}
			}
		}

		private void workAsPlainConsumer() throws SQLException {
			ReceivedBatch batch = ReceivedBatch.receive(this.session, "pgque.receive_batch(?, 'c', 100000, 100000000)",
					PartitionRaceTests.this.queue);
			if (batch != null) {
				List<Long> failed = batch.events().stream().filter((event) -> this.random.nextInt(10) == 0).toList();
				for (long event : batch.events()) {
					record(batch.id(), event, failed.contains(event));
				}
				assertThat(batch.settle(this.session, null, failed)).isTrue();
				this.session.commit();
			}
		}

		private void record(long batch, long event, boolean failed) throws SQLException {
			try (PreparedStatement statement = this.session.connection()
				.prepareStatement("insert into handled (event, key, retry, failed)"
						+ " select ev_id, ev_extra1, ev_retry, ? from pgque.get_batch_events(?) where ev_id = ?")) {
				statement.setBoolean(1, failed);
				statement.setLong(2, batch);
				statement.setLong(3, event);
				statement.executeUpdate();
			}
		}

	}

	/**
	 * Do something in a transaction, unless the engine refuses it.
	 * @return whether it was done
	 */
	private boolean attempt(Session session, Crowd.Work work) throws Exception {
		try {
			work.run();
			session.commit();
			return true;
		}
		catch (SQLException ex) {
			session.rollback();
			SqlError error = SqlError.of(ex);
			assertThat(error.state()).as(error.message()).isEqualTo("P0001");
			assertThat(error.message()).containsAnyOf("n=", "not leased", "fenced", "not a partitioned consumer",
					"not subscribed", "Not subscriber", "receive_partitioned", "cannot convert active",
					"batch not found");
			if (error.message().contains("fenced")) {
				this.fenced.incrementAndGet();
			}
			return false;
		}
	}

	/**
	 * Send half of the keys, each from this session only, so that its events commit in
	 * the order of their ids.
	 */
	private void sendKeys(Crowd crowd, int half) throws SQLException {
		Session session = Session.transactional(this.database);
		Random random = new Random(half);
		crowd.repeat(() -> {
			String key = KEYS[random.nextInt(4) * 2 + half];
			Long id = session.value(Long.class, "select pgque.insert_event(?, 'test', '', ?, null, null, null)",
					this.queue, key);
			if (random.nextInt(10) == 0) {
				session.rollback();
			}
			else {
				session.commit();
				this.sent.add(id);
			}
			session.run("select pg_sleep(0.004)");
			session.commit();
		});
	}

	/**
	 * Do what is left, with one worker.
	 */
	private void finish() throws Exception {
		Worker worker = new Worker(100);
		String pending = "select (select count(*) from pgque.retry_queue) + (select sum(pending_events)"
				+ " from pgque.partition_slot_status where queue_name = ?)";
		do {
			this.calls.update("update pgque.partition_slot set lease_until = now()");
			this.calls.redeliver(this.queue);
			for (int i = 0; i < 10; i++) {
				worker.work();
			}
		}
		while (this.calls.id(pending, this.queue) > 0);
	}

}
