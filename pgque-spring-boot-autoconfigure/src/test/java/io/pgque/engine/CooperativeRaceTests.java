package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.SqlCalls.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Members of a cooperative consumer that work, die, rob and leave at the same time.
 */
@PgqueDatabase
class CooperativeRaceTests {

	private static final String RECEIVE = "select batch_id from pgque.receive_coop(?, 'group', ?)";

	private static final String RECEIVE_BATCH = "pgque.receive_coop_batch(?, 'group', ?, 100000, 100000000, '50 ms')";

	private final ConcurrentLinkedQueue<Long> sent = new ConcurrentLinkedQueue<>();

	private final List<Long> done = Collections.synchronizedList(new ArrayList<>());

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
	}

	@Test
	void anotherMemberWaitsForAnOpenAllocationAndGetsTheNextBatch() throws Exception {
		register("a", "b");
		this.calls.sendTicks(this.queue, "1", "2");
		try (Crowd crowd = new Crowd();
				Session first = Session.transactional(this.database);
				Session second = Session.autoCommit(this.database)) {
			Long batch = first.value(Long.class, RECEIVE, this.queue, "a");
			int backend = second.backend();
			Future<Long> next = crowd.start(() -> second.value(Long.class, RECEIVE, this.queue, "b"));
			awaitLock(backend);
			assertThat(next).isNotDone();
			first.commit();
			assertThat(next.get(10, TimeUnit.SECONDS)).isNotNull().isNotEqualTo(batch);
		}
	}

	@Test
	void anAllocationThatIsRolledBackGoesToTheNext() throws Exception {
		register("a", "b");
		this.calls.sendTicks(this.queue, "1");
		try (Crowd crowd = new Crowd();
				Session first = Session.transactional(this.database);
				Session second = Session.autoCommit(this.database)) {
			first.value(Long.class, RECEIVE, this.queue, "a");
			int backend = second.backend();
			Future<Long> next = crowd.start(() -> second.value(Long.class,
					"select msg_id from pgque.receive_coop(?, 'group', 'b')", this.queue));
			awaitLock(backend);
			first.rollback();
			assertThat(next.get(10, TimeUnit.SECONDS)).isEqualTo(1);
		}
	}

	@Test
	void twelveSessionsRegisterOneMemberAtOnce() throws Exception {
		try (Crowd crowd = new Crowd()) {
			List<Integer> results = crowd.atOnce(12, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.value(Integer.class, "select pgque.register_subconsumer(?, 'group', 'a')",
							this.queue);
				}
			});
			assertThat(results).containsOnlyOnce(1).hasSize(12);
			assertThat(results).filteredOn((result) -> result == 0).hasSize(11);
		}
	}

	@Test
	void twelveMembersOfANewGroupReceiveAtOnce() throws Exception {
		this.calls.integer("select pgque.subscribe(?, 'marker')", this.queue);
		AtomicInteger number = new AtomicInteger();
		try (Crowd crowd = new Crowd()) {
			List<List<Long>> results = crowd.atOnce(12, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.column(Long.class, RECEIVE, this.queue, "m" + number.incrementAndGet());
				}
			});
			assertThat(results).hasSize(12).allMatch(List::isEmpty);
		}
		assertThat(this.calls.values(Long.class,
				"select count(distinct sub_id) from pgque.subscription join pgque.queue on queue_id = sub_queue"
						+ " where queue_name = ? and sub_role <> 'normal' having count(*) = 13",
				this.queue))
			.containsExactly(1L);
	}

	@Test
	void handlersOfMembersThatCommitFirstOverlap() throws Exception {
		register("a", "b");
		this.calls.sendTicks(this.queue, "1", "2", "3", "4", "5", "6");
		CyclicBarrier handlers = new CyclicBarrier(2);
		AtomicInteger number = new AtomicInteger();
		try (Crowd crowd = new Crowd()) {
			List<Integer> handled = crowd.atOnce(2, () -> {
				String member = (number.incrementAndGet() == 1) ? "a" : "b";
				int jobs = 0;
				try (Session session = Session.transactional(this.database)) {
					List<Long> batch = session.column(Long.class, RECEIVE, this.queue, member);
					session.commit();
					while (!batch.isEmpty()) {
						// Each job meets one of the other member: neither waits for the
						// other's end.
						handlers.await(20, TimeUnit.SECONDS);
						assertThat(session.value(Integer.class, "select pgque.ack(?)", batch.get(0))).isEqualTo(1);
						session.commit();
						jobs++;
						batch = session.column(Long.class, RECEIVE, this.queue, member);
						session.commit();
					}
				}
				return jobs;
			});
			assertThat(handled).containsExactly(3, 3);
		}
	}

	@Test
	void nothingIsLostNorDoneTwiceWhereMembersDieAndRob() throws Exception {
		register("m0");
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '1000')", this.queue);
		try (Crowd crowd = new Crowd()) {
			sendAndTick(crowd);
			for (int i = 0; i < 6; i++) {
				Worker worker = new Worker("m" + i, i);
				crowd.repeat(worker::work);
			}
			crowd.runFor(3000);
		}
		finish();
		assertThat(this.done).doesNotHaveDuplicates().containsExactlyInAnyOrderElementsOf(this.sent);
	}

	/**
	 * A member that settles some of its batches, late or in part or with failures, leaves
	 * others alone, and dies now and then.
	 */
	private final class Worker {

		private final String member;

		private final Random random;

		private Session session;

		Worker(String member, int seed) throws SQLException {
			this.member = member;
			this.random = new Random(seed);
			this.session = Session.transactional(CooperativeRaceTests.this.database);
		}

		void work() throws SQLException {
			ReceivedBatch batch = ReceivedBatch.receive(this.session, RECEIVE_BATCH, CooperativeRaceTests.this.queue,
					this.member);
			int chance = this.random.nextInt(20);
			if (chance == 0) {
				die();
				return;
			}
			this.session.commit();
			if (chance == 1) {
				die();
			}
			if (batch == null || chance < 4) {
				return;
			}
			if (chance < 7) {
				this.session.run("select pg_sleep(0.06)");
				this.session.commit();
			}
			CooperativeRaceTests.this.done.addAll(batch.settleAtRandom(this.session, this.random));
		}

		private void die() throws SQLException {
			CooperativeRaceTests.this.database.query("select pg_terminate_backend(?)", this.session.backend());
			this.session = Session.transactional(CooperativeRaceTests.this.database);
		}

	}

	@Test
	void membersComeAndGoWithoutDeadlock() throws Exception {
		register("keeper");
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '1000')", this.queue);
		try (Crowd crowd = new Crowd()) {
			sendAndTick(crowd);
			for (int i = 0; i < 8; i++) {
				Random random = new Random(i);
				Session session = Session.transactional(this.database);
				crowd.repeat(() -> {
					String member = "m" + random.nextInt(3);
					switch (random.nextInt(6)) {
						case 0 -> attempt(session, "select pgque.register_subconsumer(?, 'group', ?)", member);
						case 1 -> attempt(session, "select pgque.unregister_subconsumer(?, 'group', ?, 1)", member);
						case 2 -> attempt(session, "select pgque.unregister_consumer(?, 'group.' || ?)", member);
						case 3 -> attempt(session, "select pgque.touch_subconsumer(?, 'group', ?)", member);
						default -> {
							ReceivedBatch batch = ReceivedBatch.receive(session, RECEIVE_BATCH, this.queue, member);
							session.commit();
							if (batch != null) {
								this.done.addAll(batch.settleAtRandom(session, random));
							}
						}
					}
				});
			}
			crowd.runFor(2500);
		}
		finish();
		assertThat(this.done).doesNotHaveDuplicates().containsExactlyInAnyOrderElementsOf(this.sent);
	}

	@Test
	void groupsAppearAndDisappearWithoutDeadlock() throws Exception {
		AtomicInteger received = new AtomicInteger();
		try (Crowd crowd = new Crowd()) {
			sendAndTick(crowd);
			for (int i = 0; i < 8; i++) {
				Random random = new Random(i);
				Session session = Session.transactional(this.database);
				crowd.repeat(() -> {
					String member = "m" + random.nextInt(2);
					switch (random.nextInt(6)) {
						case 0 -> attempt(session, "select pgque.register_subconsumer(?, 'group', ?, true)", member);
						case 1, 2 -> attempt(session, "select pgque.unregister_subconsumer(?, 'group', ?, 1)", member);
						case 3 -> attempt(session, "select pgque.unsubscribe(?, 'group' || left(?, 0))", member);
						case 4 -> attempt(session, "select pgque.subscribe(?, 'group' || left(?, 0))", member);
						default -> received.addAndGet(attempt(session,
								"select count(*)::int from pgque.receive_coop(?, 'group', ?, 100, '10 ms')", member));
					}
				});
			}
			crowd.runFor(2500, () -> received.get() > 0);
		}
		assertThat(received).hasPositiveValue();
	}

	/**
	 * Run a call in a transaction of its own. The engine may refuse it, but must not fail
	 * with a deadlock, a duplicate key or a stale position.
	 */
	private int attempt(Session session, String sql, String member) throws SQLException {
		try {
			Integer result = session.value(Integer.class, sql, this.queue, member);
			session.commit();
			return (result != null) ? result : 0;
		}
		catch (SQLException ex) {
			session.rollback();
			assertThat(SqlError.of(ex)).extracting(SqlError::state).isEqualTo("P0001");
			return 0;
		}
	}

	private void sendAndTick(Crowd crowd) throws SQLException {
		for (int i = 0; i < 2; i++) {
			Session sender = Session.transactional(this.database);
			Random random = new Random(100 + i);
			crowd.repeat(() -> {
				List<Long> ids = new ArrayList<>();
				for (int n = random.nextInt(3); n >= 0; n--) {
					ids.add(sender.send(this.queue, "job"));
				}
				sender.commit();
				this.sent.addAll(ids);
				sender.run("select pg_sleep(0.004)");
				sender.commit();
			});
		}
		Session maintenance = Session.autoCommit(this.database);
		crowd.repeat(() -> {
			maintenance.run("select pgque.maint_retry_events()");
			maintenance.run("select * from pgque.tick_now()");
		});
	}

	/**
	 * Do what is left, as the only member there is.
	 */
	private void finish() throws SQLException {
		try (Session session = Session.transactional(this.database)) {
			int idle = 0;
			while (idle < 3) {
				session.run("update pgque.retry_queue set ev_retry_after = now() - interval '1 second'");
				session.commit();
				session.run("select pgque.maint_retry_events()");
				session.commit();
				session.run("select * from pgque.tick_now()");
				session.commit();
				ReceivedBatch batch = ReceivedBatch.receive(session,
						"pgque.receive_coop_batch(?, 'group', 'last', 100000, 100000000, '0')", this.queue);
				session.commit();
				if (batch == null) {
					idle++;
				}
				else {
					assertThat(batch.settle(session, null, List.of())).isTrue();
					session.commit();
					this.done.addAll(batch.events());
				}
			}
		}
	}

	private void register(String... members) {
		for (String member : members) {
			this.calls.integer("select pgque.register_subconsumer(?, 'group', ?)", this.queue, member);
		}
	}

	private void awaitLock(int backend) {
		Awaitility.await()
			.until(() -> this.database.value(Boolean.class,
					"select coalesce(wait_event_type = 'Lock', false) from pg_stat_activity where pid = ?", backend));
	}

}
