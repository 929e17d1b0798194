package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * What is delayed and committed is delivered once or cancelled, whatever happens at the
 * same time.
 */
@PgqueDatabase
@Timeout(120)
class DelayedSendRaceTests {

	private static final String DELIVER = "select pgque.maint_deliver_delayed()";

	private static final String SEND = "select pgque.send_after(?, 't', ?, ?::interval)";

	private static final String WAITING = "select count(*) from pgque.delayed_events";

	private static final AtomicInteger NUMBER = new AtomicInteger();

	private final ReadWriteLock sending = new ReentrantReadWriteLock();

	TestDatabase database;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.database.update("delete from pgque.delayed_events");
		this.queue = "delayed-race-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'consumer')", this.queue, this.queue);
	}

	@Test
	void eightPassesAtOnceDeliverOnce() throws Exception {
		this.database.query(
				"select pgque.send_after(?, 't', n::text, interval '1 hour') from generate_series(1, 3000) n",
				this.queue);
		this.database.update("update pgque.delayed_events set de_deliver_at = now() where de_queue_name = ?",
				this.queue);
		try (Crowd crowd = new Crowd()) {
			List<Integer> delivered = crowd.atOnce(8, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.value(Integer.class, DELIVER);
				}
			});
			assertThat(delivered).containsOnlyOnce(3000).containsOnly(3000, 0);
		}
		assertThat(received()).hasSize(3000).doesNotHaveDuplicates();
	}

	@Test
	void aPassThatFindsAnotherAtWorkDoesNotWait() throws Exception {
		sendDue("x");
		try (Session first = Session.transactional(this.database); Session second = Session.autoCommit(this.database)) {
			assertThat(first.value(Integer.class, DELIVER)).isOne();
			second.run("set statement_timeout = '5 s'");
			assertThat(second.value(Integer.class, DELIVER)).isZero();
			first.rollback();
			assertThat(second.value(Integer.class, DELIVER)).isOne();
		}
		assertThat(received()).containsExactly("x");
	}

	@Test
	void aCommitAfterItsTimeIsDelivered() throws Exception {
		try (Session late = Session.transactional(this.database); Session other = Session.autoCommit(this.database)) {
			late.value(Long.class, SEND, this.queue, "late", "10 milliseconds");
			late.run("savepoint one");
			late.value(Long.class, SEND, this.queue, "late, in a savepoint", "10 milliseconds");
			late.run("release savepoint one");
			for (int i = 0; i < 3; i++) {
				other.value(Long.class, SEND, this.queue, "early " + i, "20 milliseconds");
				other.run("select pg_sleep(0.03)");
				assertThat(other.value(Integer.class, DELIVER)).isOne();
			}
			late.commit();
			assertThat(other.value(Integer.class, DELIVER)).isEqualTo(2);
			assertThat(other.value(Integer.class, DELIVER)).isZero();
		}
		assertThat(received()).containsExactlyInAnyOrder("early 0", "early 1", "early 2", "late",
				"late, in a savepoint");
	}

	@Test
	void anEventThatItsOwnTransactionDeliversIsNotDoubled() throws Exception {
		try (Session session = Session.transactional(this.database)) {
			session.value(Long.class, SEND, this.queue, "own", "10 milliseconds");
			session.run("select pg_sleep(0.02)");
			session.value(Integer.class, DELIVER);
			session.commit();
		}
		this.database.query(DELIVER);
		this.database.query(DELIVER);
		assertThat(received()).containsExactly("own");
	}

	@Test
	void anEventThatIsBeingCancelledHoldsUpNoOther() throws Exception {
		long id = sendDue("cancelled");
		try (Session canceller = Session.transactional(this.database);
				Session deliverer = Session.autoCommit(this.database)) {
			assertThat(canceller.value(Integer.class, "select pgque.cancel_delayed(?, ?)", this.queue, id)).isOne();
			sendDue("another");
			deliverer.run("set statement_timeout = '5 s'");
			assertThat(deliverer.value(Integer.class, DELIVER)).isOne();
			sendDue("a third");
			assertThat(deliverer.value(Integer.class, DELIVER)).isOne();
			assertThat(deliverer.value(Integer.class, DELIVER)).isZero();
			canceller.commit();
			assertThat(deliverer.value(Integer.class, DELIVER)).isZero();
		}
		assertThat(received()).containsExactly("another", "a third");
	}

	@Test
	void anEventWhoseCancellingIsRolledBackIsDelivered() throws Exception {
		long id = sendDue("not cancelled");
		try (Session canceller = Session.transactional(this.database);
				Session deliverer = Session.autoCommit(this.database)) {
			assertThat(canceller.value(Integer.class, "select pgque.cancel_delayed(?, ?)", this.queue, id)).isOne();
			sendDue("another");
			assertThat(deliverer.value(Integer.class, DELIVER)).isOne();
			canceller.rollback();
			assertThat(deliverer.value(Integer.class, DELIVER)).isOne();
		}
		assertThat(received()).containsExactly("another", "not cancelled");
	}

	@Test
	void anEventThatIsPutOffWhileItIsDueWaitsOn() throws Exception {
		long id = sendDue("put off");
		try (Session owner = Session.transactional(this.database);
				Session deliverer = Session.autoCommit(this.database)) {
			owner.run("update pgque.delayed_events set de_deliver_at = now() + interval '1 hour' where de_id = " + id);
			assertThat(deliverer.value(Integer.class, DELIVER)).isZero();
			owner.commit();
			assertThat(deliverer.value(Integer.class, DELIVER)).isZero();
			owner.run("update pgque.delayed_events set de_deliver_at = now() - interval '1 hour' where de_id = " + id);
			owner.commit();
			assertThat(deliverer.value(Integer.class, DELIVER)).isOne();
		}
		assertThat(received()).containsExactly("put off");
	}

	@Test
	void whoCancelsAnEventInDeliveryLearnsTheOutcome() throws Exception {
		for (boolean delivered : new boolean[] { true, false }) {
			long id = sendDue("delivered " + delivered);
			try (Crowd crowd = new Crowd();
					Session deliverer = Session.transactional(this.database);
					Session canceller = Session.autoCommit(this.database)) {
				assertThat(deliverer.value(Integer.class, DELIVER)).isOne();
				int backend = canceller.backend();
				Future<Integer> cancelled = crowd
					.start(() -> canceller.value(Integer.class, "select pgque.cancel_delayed(?, ?)", this.queue, id));
				Awaitility.await()
					.until(() -> this.database.value(Boolean.class,
							"select coalesce(wait_event_type = 'Lock', false) from pg_stat_activity where pid = ?",
							backend));
				if (delivered) {
					deliverer.commit();
				}
				else {
					deliverer.rollback();
				}
				assertThat(cancelled.get(10, TimeUnit.SECONDS)).isEqualTo(delivered ? 0 : 1);
			}
		}
		assertThat(received()).containsExactly("delivered true");
	}

	@Test
	void aSlotThatASenderIsInIsNotEmptied() throws Exception {
		try (Session sender = Session.transactional(this.database)) {
			sender.value(Long.class, SEND, this.queue, "open", "10 milliseconds");
			emptyAllSlots();
			sender.commit();
		}
		emptyAllSlots();
		Awaitility.await().until(() -> this.database.value(Integer.class, DELIVER) == 1);
		emptyAllSlots();
		assertThat(received()).containsExactly("open");
	}

	@Test
	void ticksAndSendsTakeNoNoticeOfAnOpenDelayedSend() throws Exception {
		try (Session open = Session.transactional(this.database); Session other = Session.autoCommit(this.database)) {
			open.value(Long.class, SEND, this.queue, "open", "1 hour");
			other.run("set statement_timeout = '5 s'");
			other.send(this.queue, "plain");
			assertThat(other.column(String.class, "select outcome from pgque.tick_now()")).containsExactly("ticked");
			other.value(Integer.class, "select pgque.maint()");
			open.rollback();
		}
		assertThat(received()).containsExactly("plain");
	}

	@Test
	void inACrowdEveryEventIsDeliveredOrCancelledOnce() throws Exception {
		ConcurrentLinkedQueue<Long> ids = new ConcurrentLinkedQueue<>();
		List<String> sent = Collections.synchronizedList(new ArrayList<>());
		List<String> cancelled = Collections.synchronizedList(new ArrayList<>());
		List<String> delivered = Collections.synchronizedList(new ArrayList<>());
		AtomicLong emptied = new AtomicLong();
		try (Crowd crowd = new Crowd()) {
			for (int i = 0; i < 6; i++) {
				sendAtRandom(crowd, i, sent, ids);
			}
			for (int i = 0; i < 2; i++) {
				cancelAtRandom(crowd, i, ids, cancelled);
			}
			for (int i = 0; i < 3; i++) {
				Session deliverer = Session.transactional(this.database);
				Random random = new Random(i);
				crowd.repeat(() -> {
					deliverer.value(Integer.class, DELIVER);
					if (random.nextInt(10) == 0) {
						deliverer.rollback();
					}
					else {
						deliverer.commit();
					}
				});
			}
			Session janitor = Session.autoCommit(this.database);
			crowd.repeat(() -> {
				// Senders pause until all is delivered, and go on while the slots are
				// emptied.
				this.sending.writeLock().lock();
				try {
					Awaitility.await().until(() -> {
						janitor.value(Integer.class, DELIVER);
						return janitor.value(Long.class, WAITING) == 0;
					});
				}
				finally {
					this.sending.writeLock().unlock();
				}
				emptied.addAndGet(emptySlots(janitor));
				janitor.run("select pg_sleep(0.2)");
			});
			Session consumer = Session.autoCommit(this.database);
			crowd.repeat(() -> {
				consumer.column(String.class, "select outcome from pgque.tick_now()");
				delivered.addAll(payloads(consumer));
			});
			crowd.runFor(5000, () -> cancelled.size() > 10 && emptied.get() > 0);
		}
		Awaitility.await().until(() -> {
			this.database.query(DELIVER);
			return this.database.value(Long.class, WAITING) == 0;
		});
		delivered.addAll(received());
		delivered.addAll(cancelled);
		assertThat(delivered).doesNotHaveDuplicates().containsExactlyInAnyOrderElementsOf(sent);
		assertThat(cancelled).hasSizeGreaterThan(10);
		assertThat(emptied.get()).isPositive();
		emptyAllSlots();
		assertThat(this.database.value(Long.class, "select sum(pg_relation_size(inhrelid)) from pg_inherits"
				+ " where inhparent = 'pgque_internal.delayed'::regclass"))
			.isZero();
	}

	private void sendAtRandom(Crowd crowd, int seed, List<String> sent, ConcurrentLinkedQueue<Long> ids)
			throws SQLException {
		Session sender = Session.transactional(this.database);
		Random random = new Random(seed);
		AtomicInteger number = new AtomicInteger();
		crowd.repeat(() -> {
			this.sending.readLock().lock();
			this.sending.readLock().unlock();
			List<String> payloads = new ArrayList<>();
			List<Long> mine = new ArrayList<>();
			for (int i = random.nextInt(4); i >= 0; i--) {
				payloads.add(seed + ":" + number.incrementAndGet());
				mine.add(sender.value(Long.class,
						"select pgque.send_at(?, 't', ?, clock_timestamp() + ?::interval, 'key')", this.queue,
						payloads.get(payloads.size() - 1), (1 + random.nextInt(60)) + " milliseconds"));
			}
			if (random.nextInt(4) == 0) {
				// Longer than the delay.
				sender.run("select pg_sleep(" + random.nextInt(100) / 1000.0 + ")");
			}
			if (random.nextInt(6) == 0) {
				sender.rollback();
			}
			else {
				sender.commit();
				sent.addAll(payloads);
				ids.addAll(mine);
			}
		});
	}

	private void cancelAtRandom(Crowd crowd, int seed, ConcurrentLinkedQueue<Long> ids, List<String> cancelled)
			throws SQLException {
		Session canceller = Session.transactional(this.database);
		Random random = new Random(seed);
		crowd.repeat(() -> {
			Long id = ids.poll();
			String payload = (id == null) ? null : canceller.value(String.class,
					"select (select de_data from pgque.delayed_events where de_id = ?)", id);
			if (payload != null
					&& canceller.value(Integer.class, "select pgque.cancel_delayed(?, ?)", this.queue, id) == 1) {
				canceller.run("select pg_sleep(" + random.nextInt(20) / 1000.0 + ")");
				if (random.nextBoolean()) {
					canceller.commit();
					cancelled.add(payload);
				}
			}
			canceller.rollback();
		});
	}

	private void emptyAllSlots() throws SQLException {
		try (Session session = Session.autoCommit(this.database)) {
			emptySlots(session);
		}
	}

	/**
	 * Do to all slots, each in a transaction of its own, what maintenance does to those
	 * that have grown.
	 * @return the number of those that were emptied
	 */
	private static long emptySlots(Session session) throws SQLException {
		long emptied = 0;
		for (int slot = 0; slot <= 16; slot++) {
			String table = "pgque_internal.delayed_" + slot;
			if (Boolean.TRUE.equals(session.value(Boolean.class,
					"select pg_relation_size(?::regclass) > 0" + " and pgque_internal.empty_delay_slot(?::regclass)",
					table, table))) {
				emptied++;
			}
		}
		return emptied;
	}

	private long sendDue(String payload) {
		long id = this.database.value(Long.class, SEND, this.queue, payload, "1 hour");
		this.database.update("update pgque.delayed_events set de_deliver_at = now() where de_id = ?", id);
		return id;
	}

	private List<String> received() throws SQLException {
		this.database.query("select * from pgque.tick_now()");
		try (Session session = Session.autoCommit(this.database)) {
			List<String> all = new ArrayList<>();
			for (List<String> some = payloads(session); !some.isEmpty(); some = payloads(session)) {
				all.addAll(some);
			}
			return all;
		}
	}

	private List<String> payloads(Session session) throws SQLException {
		List<String> payloads = session.column(String.class,
				"select payload from pgque.receive_batch(?, 'consumer', 100000, 100000000) order by msg_id",
				this.queue);
		session.column(Integer.class, "select pgque.ack(sub_batch) from pgque.subscription join pgque.queue"
				+ " on queue_id = sub_queue where queue_name = ? and sub_batch is not null", this.queue);
		return payloads;
	}

}
