package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.SqlCalls.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Instances that want the same lease, and those that wake after they lost it.
 */
@PgqueDatabase
class LeaseRaceTests {

	private final Set<Long> sent = new ConcurrentSkipListSet<>();

	private final List<Long> done = Collections.synchronizedList(new ArrayList<>());

	private final AtomicInteger lost = new AtomicInteger();

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void subscribe() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.calls.integer("select pgque.subscribe(?, 'c')", this.queue);
	}

	@Test
	void oneOfTwelveInstancesWins() throws Exception {
		assertOneOfTwelveInstancesWins(1);
	}

	@Test
	void oneOfTwelveInstancesTakesADeadOnesLease() throws Exception {
		try (Session session = Session.autoCommit(this.database)) {
			acquire(session, "dead", "1 minute");
		}
		this.calls.update("update pgque_internal.instance set ins_heartbeat = now() - interval '1 hour'");
		assertOneOfTwelveInstancesWins(2);
	}

	private void assertOneOfTwelveInstancesWins(long epoch) throws Exception {
		AtomicInteger number = new AtomicInteger();
		try (Crowd crowd = new Crowd()) {
			List<@Nullable Long> epochs = crowd.atOnce(12, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return acquire(session, "i" + number.incrementAndGet(), "1 minute");
				}
			});
			assertThat(epochs).containsOnlyOnce(epoch).hasSize(12);
			assertThat(epochs).filteredOn((result) -> result == null).hasSize(11);
		}
	}

	@Test
	void whoWantsALeaseDoesNotWaitForAHandler() throws Exception {
		this.calls.sendTicks(this.queue, "1");
		try (Session holder = Session.transactional(this.database); Session other = Session.autoCommit(this.database)) {
			acquire(holder, "holder", "1 minute");
			holder.commit();
			ReceivedBatch batch = receive(holder, "holder", 1);
			assertThat(batch).isNotNull();
			this.calls.update("update pgque_internal.instance set ins_heartbeat = now() - interval '1 hour'");
			other.run("set statement_timeout = '10 s'");
			assertThat(acquire(other, "other", "1 minute")).as("the transaction is as good as the lease").isNull();
			holder.rollback();
			assertThat(acquire(other, "other", "1 minute")).isEqualTo(2);
		}
	}

	@Test
	void aSettlementAndATakeoverAtTheSameTimeDoTheWorkOnce() throws Exception {
		try (Crowd crowd = new Crowd();
				Session first = Session.autoCommit(this.database);
				Session second = Session.autoCommit(this.database)) {
			Session holder = first;
			Session heir = second;
			for (int i = 0; i < 40; i++) {
				this.calls.sendTicks(this.queue, "" + i);
				long epoch = acquire(holder, "holder" + i, "1 minute");
				ReceivedBatch batch = receive(holder, "holder" + i, epoch);
				this.calls.update("update pgque_internal.instance set ins_heartbeat = now() - interval '1 hour'");
				String heirName = "holder" + (i + 1);
				Future<@Nullable Long> takeover = crowd.start(() -> acquire(heir, heirName, "1 minute"));
				boolean won = batch.settle(holder, null, List.of());
				Long next = takeover.get(10, TimeUnit.SECONDS);
				if (next == null) {
					next = acquire(heir, heirName, "1 minute");
				}
				ReceivedBatch again = receive(heir, heirName, next);
				if (won) {
					assertThat(again).isNull();
				}
				else {
					assertThat(again.events()).isEqualTo(batch.events());
					assertThat(again.settle(heir, null, List.of())).isTrue();
				}
			}
		}
	}

	@Test
	void instancesThatFreezeNeitherLoseNorRepeatWork() throws Exception {
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '1000')", this.queue);
		try (Crowd crowd = new Crowd()) {
			Session sender = Session.autoCommit(this.database);
			crowd.repeat(() -> {
				this.sent.add(sender.send(this.queue, "work"));
				sender.run("select pg_sleep(0.003)");
			});
			Session maintenance = Session.autoCommit(this.database);
			crowd.repeat(() -> {
				for (String call : new String[] { "maint_retry_events()", "tick_now()", "maint()" }) {
					maintenance.run("select * from pgque." + call);
				}
			});
			for (int i = 0; i < 5; i++) {
				String instance = "i" + i;
				Random random = new Random(i);
				Session session = Session.transactional(this.database);
				crowd.repeat(() -> work(session, instance, random));
			}
			crowd.runFor(3000, () -> this.lost.get() > 0);
		}
		finish();
		assertThat(this.done).doesNotHaveDuplicates().containsExactlyInAnyOrderElementsOf(this.sent);
		assertThat(this.lost).hasPositiveValue();
	}

	/**
	 * Hold the lease for a while, beating or frozen, and work meanwhile.
	 */
	private void work(Session session, String instance, Random random) throws SQLException {
		Long epoch = acquireUnlessFrozen(session, instance);
		if (epoch == null) {
			session.run("select pg_sleep(0.01)");
			session.commit();
			return;
		}
		try {
			for (int i = random.nextInt(8); i >= 0; i--) {
				ReceivedBatch batch = receive(session, instance, epoch);
				if (random.nextBoolean()) {
					session.commit();
				}
				if (random.nextInt(4) == 0) {
					session.run("select pg_sleep(" + random.nextInt(80) / 1000.0 + ")");
				}
				if (batch != null) {
					List<Long> finished = batch.settleAtRandom(session, random);
					this.done.addAll(finished);
				}
				session.commit();
				session.value(String.class, "select pgque.instance_beat(?)::text", instance);
				session.commit();
			}
			if (random.nextBoolean()) {
				session.value(Boolean.class, "select pgque.lease_release(?, 'c', ?, ?)", this.queue, instance, epoch);
				session.commit();
			}
		}
		catch (SQLException ex) {
			session.rollback();
			assertThat(SqlError.of(ex).state()).isEqualTo("55P03");
			this.lost.incrementAndGet();
		}
	}

	/**
	 * On a busy machine, even the time between a sign of life and the next call may be
	 * longer than the lease.
	 */
	private @Nullable Long acquireUnlessFrozen(Session session, String instance) throws SQLException {
		try {
			Long epoch = acquire(session, instance, "40 ms");
			session.commit();
			return epoch;
		}
		catch (SQLException ex) {
			session.rollback();
			assertThat(ex.getMessage()).contains("has no heartbeat within");
			return null;
		}
	}

	private @Nullable Long acquire(Session session, String instance, String lease) throws SQLException {
		session.value(String.class, "select pgque.instance_beat(?)::text", instance);
		return session.value(Long.class, "select pgque.lease_acquire(?, 'c', ?, ?::interval)", this.queue, instance,
				lease);
	}

	private @Nullable ReceivedBatch receive(Session session, String instance, long epoch) throws SQLException {
		return ReceivedBatch.receive(session, "pgque.receive_leased(?, 'c', ?, ?, 100000, 100000000)", this.queue,
				instance, epoch);
	}

	/**
	 * Do what is left, without a lease.
	 */
	private void finish() throws SQLException {
		this.calls.update("update pgque_internal.instance set ins_heartbeat = now() - interval '1 hour'");
		try (Session session = Session.autoCommit(this.database)) {
			for (int idle = 0; idle < 3; idle++) {
				this.calls.redeliver(this.queue);
				ReceivedBatch batch = ReceivedBatch.receive(session, "pgque.receive_batch(?, 'c', 100000, 100000000)",
						this.queue);
				if (batch != null) {
					idle = 0;
					assertThat(batch.settle(session, null, List.of())).isTrue();
					this.done.addAll(batch.events());
				}
			}
		}
	}

}
