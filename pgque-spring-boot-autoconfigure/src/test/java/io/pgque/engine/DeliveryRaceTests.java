package io.pgque.engine;

import java.sql.Savepoint;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * What is committed is delivered, once, whatever ticks, rotates or stalls at the same
 * time.
 */
@PgqueDatabase
class DeliveryRaceTests {

	private static final AtomicLong NUMBER = new AtomicLong();

	private final ConcurrentLinkedQueue<Long> sent = new ConcurrentLinkedQueue<>();

	private final List<Long> delivered = Collections.synchronizedList(new ArrayList<>());

	private final AtomicInteger rotations = new AtomicInteger();

	TestDatabase database;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.queue = "race-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'consumer')", this.queue, this.queue);
	}

	@Test
	void eightTickersAndEightSendersNeitherLoseNorDouble() throws Exception {
		this.database.query("select pgque.set_queue_config(?, 'ticker_max_lag', '1 ms')", this.queue);
		this.database.query("select pgque.set_queue_config(?, 'ticker_idle_period', '1 ms')", this.queue);
		try (Crowd crowd = new Crowd()) {
			for (int i = 0; i < 8; i++) {
				Session ticker = Session.autoCommit(this.database);
				String tick = (i % 2 == 0) ? "select count(*) from pgque.tick_now()" : "select pgque.ticker()";
				crowd.repeat(() -> ticker.value(Long.class, tick));
				sendAtRandom(crowd, Session.transactional(this.database), 20 + i);
			}
			consume(crowd);
			crowd.runFor(4000);
		}
		assertAllDeliveredOnce();
		assertThat(snapshotInversions()).isZero();
	}

	@Test
	void sendersWithOldSnapshotsLoseNothingAcrossRotations() throws Exception {
		this.database.query("select pgque.set_queue_config(?, 'rotation_period', '1 ms')", this.queue);
		try (Crowd crowd = new Crowd()) {
			for (int i = 0; i < 12; i++) {
				Session sender = Session.repeatableRead(this.database);
				Random random = new Random(i);
				crowd.repeat(() -> {
					sender.value(Long.class, "select count(*) from pgque.queue");
					sender.run("select pg_sleep(" + random.nextInt(300) / 1000.0 + ")");
					long id = sender.send(this.queue, "old snapshot");
					sender.commit();
					this.sent.add(id);
				});
			}
			Session ticker = Session.autoCommit(this.database);
			crowd.repeat(() -> ticker.value(Long.class, "select count(*) from pgque.tick_now()"));
			Session maintainer = Session.autoCommit(this.database);
			crowd.repeat(() -> {
				String before = maintainer.value(String.class, "select pgque.current_event_table(?)", this.queue);
				maintainer.value(Integer.class, "select pgque.maint()");
				String after = maintainer.value(String.class, "select pgque.current_event_table(?)", this.queue);
				if (!Objects.equals(before, after)) {
					this.rotations.incrementAndGet();
				}
			});
			consume(crowd);
			crowd.runFor(4000, () -> this.rotations.get() > 10);
		}
		assertAllDeliveredOnce();
		assertThat(this.rotations.get()).isGreaterThan(10);
	}

	@Test
	void aSenderThatStalledBeforeItsInsertLosesNothing() throws Exception {
		this.database.query("select pgque.set_queue_config(?, 'rotation_period', '1 ms')", this.queue);
		String leaf = this.database.value(String.class, "select pgque.current_event_table(?)", this.queue);
		try (Crowd crowd = new Crowd();
				Session blocker = Session.transactional(this.database);
				Session sender = Session.autoCommit(this.database)) {
			int backend = sender.backend();
			blocker.run("lock table " + leaf + " in share mode");
			Future<Long> id = crowd.start(() -> sender.send(this.queue, "stalled"));
			Awaitility.await()
				.until(() -> this.database.value(Boolean.class,
						"select exists (select from pg_locks where pid = ? and not granted)", backend));
			rotate();
			rotate();
			assertThat(this.database.value(String.class, "select pgque.current_event_table(?)", this.queue))
				.isNotEqualTo(leaf);
			blocker.commit();
			this.sent.add(id.get(10, TimeUnit.SECONDS));
		}
		this.database.query("select * from pgque.tick_now()");
		// The next turn would empty the slot the late event is in.
		rotate();
		assertAllDeliveredOnce();
		rotate();
		rotate();
		assertThat(this.database.value(Long.class, "select count(*) from " + leaf)).isZero();
	}

	@Test
	void aCommitBehindAKeepAliveTickIsDelivered() throws Exception {
		try (Session sender = Session.transactional(this.database);
				Session ticker = Session.autoCommit(this.database)) {
			this.sent.add(sender.send(this.queue, "open while ticked"));
			// A tick that knows the event's id but cannot see the event.
			this.database.query("select pgque.force_next_tick(?)", this.queue);
			assertThat(ticker.value(Long.class, "select pgque.ticker(?)", this.queue)).isNotNull();
			assertThat(ticker.column(String.class, "select outcome from pgque.tick_now()")).isEmpty();
			sender.commit();
			// Nothing is sent any more: the sequence stands still from here on.
			assertThat(ticker.column(String.class, "select outcome from pgque.tick_now()")).containsExactly("ticked");
		}
		assertAllDeliveredOnce();
	}

	@Test
	void aCommitBehindAnExactTickIsDelivered() throws Exception {
		try (Session early = Session.transactional(this.database); Session ticker = Session.autoCommit(this.database)) {
			this.sent.add(early.send(this.queue, "first id, last commit"));
			try (Session late = Session.autoCommit(this.database)) {
				this.sent.add(late.send(this.queue, "second id, first commit"));
			}
			assertThat(ticker.column(String.class, "select outcome from pgque.tick_now()")).containsExactly("ticked");
			assertThat(ticker.column(String.class, "select outcome from pgque.tick_now()")).isEmpty();
			early.commit();
			assertThat(ticker.column(String.class, "select outcome from pgque.tick_now()")).containsExactly("ticked");
			assertThat(ticker.column(String.class, "select outcome from pgque.tick_now()")).isEmpty();
		}
		assertAllDeliveredOnce();
	}

	@Test
	void sendTickAndReceiveInOneTransactionSeeNothing() throws Exception {
		try (Session session = Session.transactional(this.database);
				Session other = Session.autoCommit(this.database)) {
			session.send(this.queue, "own");
			// Others commit in between, so that the own id lies below the snapshot's end.
			this.sent.add(other.send(this.queue, "other"));
			this.sent.add(other.send(this.queue, "another"));
			assertThat(session.column(String.class, "select outcome from pgque.tick_now(array[?])", this.queue))
				.containsExactly("ticked");
			assertThat(session.consume(this.queue, "consumer")).containsExactlyElementsOf(this.sent);
			session.rollback();
		}
		this.database.query("select * from pgque.tick_now()");
		assertAllDeliveredOnce();
	}

	private void rotate() {
		this.database.query("select pgque.maint()");
		this.database.query("select pgque.maint()");
	}

	private void sendAtRandom(Crowd crowd, Session sender, long seed) {
		Random random = new Random(seed);
		crowd.repeat(() -> {
			List<Long> ids = new ArrayList<>();
			ids.add(sender.send(this.queue, "first"));
			if (random.nextInt(4) == 0) {
				Savepoint savepoint = sender.connection().setSavepoint();
				long id = sender.send(this.queue, "in a savepoint");
				if (random.nextBoolean()) {
					sender.connection().rollback(savepoint);
				}
				else {
					sender.connection().releaseSavepoint(savepoint);
					ids.add(id);
				}
			}
			if (random.nextInt(10) == 0) {
				sender.run("select pg_sleep(" + random.nextInt(20) / 1000.0 + ")");
			}
			if (random.nextInt(3) == 0) {
				ids.addAll(sender.sendBatch(this.queue, "batch", "of", "three"));
			}
			if (random.nextInt(5) == 0) {
				sender.rollback();
			}
			else {
				sender.commit();
				this.sent.addAll(ids);
			}
		});
	}

	private void consume(Crowd crowd) throws Exception {
		Session consumer = Session.autoCommit(this.database);
		crowd.repeat(() -> {
			List<Long> ids = consumer.consume(this.queue, "consumer");
			assertThat(ids).isSorted();
			this.delivered.addAll(ids);
		});
	}

	private void assertAllDeliveredOnce() throws Exception {
		this.database.query("select * from pgque.tick_now()");
		try (Session consumer = Session.autoCommit(this.database)) {
			for (List<Long> ids = consumer.consume(this.queue, "consumer"); !ids.isEmpty(); ids = consumer
				.consume(this.queue, "consumer")) {
				this.delivered.addAll(ids);
			}
		}
		assertThat(this.sent).isNotEmpty();
		assertThat(this.delivered.stream().sorted().toList()).isEqualTo(this.sent.stream().sorted().toList());
	}

	private long snapshotInversions() {
		return this.database.value(Long.class, """
				select count(*) from (
				    select pg_snapshot_xmax(tick_snapshot) as xmax, pg_snapshot_xmin(tick_snapshot) as xmin,
				           lag(pg_snapshot_xmax(tick_snapshot)) over w as last_xmax,
				           lag(pg_snapshot_xmin(tick_snapshot)) over w as last_xmin
				    from pgque.tick join pgque.queue on queue_id = tick_queue
				    where queue_name = ? window w as (order by tick_id)
				) t where xmax < last_xmax or xmin < last_xmin""", this.queue);
	}

}
