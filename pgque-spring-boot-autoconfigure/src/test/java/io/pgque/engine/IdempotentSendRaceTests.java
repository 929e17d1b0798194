package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Sessions that use a key at once.
 */
@PgqueDatabase
class IdempotentSendRaceTests {

	private static final int SESSIONS = 12;

	private static final String SEND = "select event_id from pgque.send_idem(?, 't', 'x', ?)";

	private static final AtomicInteger NUMBER = new AtomicInteger();

	TestDatabase database;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.queue = "idempotent-race-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'consumer')", this.queue, this.queue);
	}

	@Test
	void oneOfTwelveSessionsSends() throws Exception {
		try (Crowd crowd = new Crowd()) {
			List<Long> ids = crowd.atOnce(SESSIONS, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.value(Long.class, SEND, this.queue, "contended");
				}
			});
			assertThat(new HashSet<>(ids)).hasSize(1);
			assertThat(consume()).containsExactly(ids.get(0));
		}
	}

	@Test
	void oneOfTwelveSessionsTakesAnExpiredKey() throws Exception {
		this.database.query(SEND, this.queue, "expired");
		this.database.update("update pgque.idem set expires_at = now() where idem_key = 'expired'");
		try (Crowd crowd = new Crowd()) {
			List<Long> ids = crowd.atOnce(SESSIONS, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.value(Long.class, SEND, this.queue, "expired");
				}
			});
			assertThat(new HashSet<>(ids)).hasSize(1);
			assertThat(consume()).hasSize(2).containsSequence(ids.get(0));
		}
	}

	@Test
	void theSecondWaitsForTheFirstAndGetsItsEvent() throws Exception {
		try (Crowd crowd = new Crowd();
				Session first = Session.transactional(this.database);
				Session second = Session.autoCommit(this.database)) {
			Long id = first.value(Long.class, SEND, this.queue, "key");
			Future<Long> same = sendAndWaitForLock(crowd, second);
			first.commit();
			assertThat(same.get(10, TimeUnit.SECONDS)).isEqualTo(id);
			assertThat(consume()).containsExactly(id);
		}
	}

	@Test
	void theSecondSendsWhenTheFirstIsRolledBack() throws Exception {
		try (Crowd crowd = new Crowd();
				Session first = Session.transactional(this.database);
				Session second = Session.autoCommit(this.database)) {
			Long id = first.value(Long.class, SEND, this.queue, "key");
			Future<Long> other = sendAndWaitForLock(crowd, second);
			first.rollback();
			assertThat(other.get(10, TimeUnit.SECONDS)).isNotEqualTo(id);
			assertThat(consume()).containsExactly(other.get());
		}
	}

	@Test
	void keysOfOthersAreNotWaitedFor() throws Exception {
		try (Session first = Session.transactional(this.database);
				Session second = Session.transactional(this.database)) {
			// Both are the first in this queue.
			second.run("set lock_timeout = '3 s'");
			first.value(Long.class, SEND, this.queue, "one");
			second.value(Long.class, SEND, this.queue, "another");
			second.commit();
			first.commit();
		}
		assertThat(consume()).hasSize(2);
	}

	@Test
	void openSendersLetTicksAndRotationPass() throws Exception {
		this.database.query(SEND, this.queue, "before");
		this.database.query("select pgque.set_queue_config(?, 'rotation_period', '1 ms')", this.queue);
		try (Session open = Session.transactional(this.database)) {
			open.value(Long.class, SEND, this.queue, "open");
			assertThat(this.database.values(String.class, "select outcome from pgque.tick_now(array[?])", this.queue))
				.containsExactly("ticked");
			String before = this.database.value(String.class, "select pgque.current_event_table(?)", this.queue);
			this.database.query("select pgque.maint()");
			assertThat(this.database.value(String.class, "select pgque.current_event_table(?)", this.queue))
				.isNotEqualTo(before);
			open.commit();
		}
		assertThat(consume()).hasSize(2);
	}

	@ParameterizedTest
	@ValueSource(booleans = { true, false })
	void aFrozenSnapshotIsRefusedWhenTheKeyWasUsedSince(boolean serializable) throws Exception {
		try (Session frozen = Session.repeatableRead(this.database)) {
			if (serializable) {
				frozen.run("set transaction isolation level serializable");
			}
			frozen.value(Long.class, "select count(*) from pgque.idem");
			this.database.query(SEND, this.queue, "used meanwhile");
			assertThatExceptionOfType(SQLException.class)
				.isThrownBy(() -> frozen.value(Long.class, SEND, this.queue, "used meanwhile"))
				.satisfies((ex) -> assertThat(ex.getSQLState()).isEqualTo("40001"));
			frozen.rollback();
			assertThat(frozen.value(Long.class, SEND, this.queue, "used meanwhile")).isEqualTo(1);
			frozen.rollback();
		}
	}

	@Test
	void aSavepointRolledBackFreesTheKey() throws Exception {
		try (Session session = Session.transactional(this.database)) {
			session.run("savepoint first");
			Long first = session.value(Long.class, SEND, this.queue, "key");
			assertThat(session.value(Long.class, SEND, this.queue, "key")).isEqualTo(first);
			session.run("rollback to savepoint first");
			Long second = session.value(Long.class, SEND, this.queue, "key");
			session.commit();
			assertThat(consume()).containsExactly(second);
		}
	}

	@Test
	void fewKeysUsedByManyAreEachSentOnceALife() throws Exception {
		List<Long> ids = Collections.synchronizedList(new ArrayList<>());
		try (Crowd crowd = new Crowd()) {
			for (int i = 0; i < SESSIONS; i++) {
				Session session = Session.transactional(this.database);
				Random random = new Random(i);
				crowd.repeat(() -> {
					Long id = session.value(Long.class,
							"select event_id from pgque.send_idem(?, 't', 'x', ?, interval '5 milliseconds')"
									+ " where not deduped union all select null limit 1",
							this.queue, "key " + random.nextInt(5));
					if (random.nextInt(4) == 0) {
						session.rollback();
					}
					else {
						session.commit();
						if (id != null) {
							ids.add(id);
						}
					}
				});
			}
			Session maintainer = Session.autoCommit(this.database);
			crowd.repeat(() -> maintainer.value(Integer.class, "select pgque.maint_idem()"));
			crowd.runFor(2000, () -> ids.size() > 50);
		}
		assertThat(ids).hasSizeGreaterThan(50).doesNotHaveDuplicates();
		assertThat(consume()).containsExactlyInAnyOrderElementsOf(ids);
	}

	private Future<Long> sendAndWaitForLock(Crowd crowd, Session session) throws SQLException {
		int backend = session.backend();
		Future<Long> id = crowd.start(() -> session.value(Long.class, SEND, this.queue, "key"));
		Awaitility.await()
			.until(() -> this.database.value(Boolean.class,
					"select coalesce(wait_event_type = 'Lock', false) from pg_stat_activity where pid = ?", backend));
		assertThat(id).isNotDone();
		return id;
	}

	private List<Long> consume() throws SQLException {
		this.database.query("select * from pgque.tick_now()");
		try (Session session = Session.autoCommit(this.database)) {
			return session.consume(this.queue, "consumer");
		}
	}

}
