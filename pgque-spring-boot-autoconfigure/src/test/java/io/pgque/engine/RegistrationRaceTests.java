package io.pgque.engine;

import java.sql.SQLException;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;

import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Queues and consumers are made, found and removed by any number of sessions at once.
 */
@PgqueDatabase
class RegistrationRaceTests {

	private static final int SESSIONS = 12;

	TestDatabase database;

	@Test
	void oneOfTwelveSessionsCreatesTheQueue() throws Exception {
		try (Crowd crowd = new Crowd()) {
			List<Integer> created = crowd.atOnce(SESSIONS, inSession("select pgque.create_queue('contended')"));
			assertThat(created).containsOnlyOnce(1).hasSize(SESSIONS);
			assertThat(Collections.frequency(created, 0)).isEqualTo(SESSIONS - 1);
		}
		assertThat(this.database.value(Long.class,
				"select count(*) from pgque.tick join pgque.queue on queue_id = tick_queue where queue_name = 'contended'"))
			.isEqualTo(1);
	}

	@Test
	void oneOfTwelveSessionsSubscribesTheConsumer() throws Exception {
		this.database.query("select pgque.create_queue('readers')");
		try (Crowd crowd = new Crowd()) {
			List<Integer> created = crowd.atOnce(SESSIONS, inSession("select pgque.subscribe('readers', 'first')"));
			assertThat(created).containsOnlyOnce(1);
		}
		assertThat(this.database.value(Long.class,
				"select count(*) from pgque.get_consumer_info('readers') where consumer_name = 'first'"))
			.isEqualTo(1);
	}

	@Test
	void everyoneStartsWhenAllCreateAndSubscribeAtOnce() throws Exception {
		try (Crowd crowd = new Crowd()) {
			List<Integer> results = crowd.atOnce(SESSIONS,
					inSession("select pgque.create_queue('together') + pgque.subscribe('together', 'all')"));
			assertThat(results.stream().mapToInt(Integer::intValue).sum()).isEqualTo(2);
		}
	}

	@Test
	void aStormOfSubscribesAndUnsubscribesNeitherFailsNorDeadlocks() throws Exception {
		this.database.query("select pgque.create_queue('storm'), pgque.create_queue('other')");
		AtomicLong done = new AtomicLong();
		try (Crowd crowd = new Crowd()) {
			for (int i = 0; i < SESSIONS; i++) {
				Session session = Session.autoCommit(this.database);
				String queue = (i % 4 == 0) ? "other" : "storm";
				crowd.repeat(() -> {
					session.value(Integer.class, "select pgque.subscribe(?, 'petrel')", queue);
					session.value(Integer.class, "select pgque.unsubscribe(?, 'petrel')", queue);
					done.incrementAndGet();
				});
			}
			Session maintainer = Session.autoCommit(this.database);
			crowd.repeat(() -> maintainer.value(Integer.class, "select pgque.maint()"));
			crowd.runFor(2000, () -> done.get() > 200);
		}
		assertThat(done.get()).isGreaterThan(200);
	}

	@Test
	void queuesComeAndGoBesideAnOpenSender() throws Exception {
		this.database.query("select pgque.create_queue('busy')");
		AtomicLong slowest = new AtomicLong();
		AtomicLong sends = new AtomicLong();
		try (Crowd crowd = new Crowd(); Session open = Session.transactional(this.database)) {
			open.send("busy", "not committed for a while");
			Session sender = Session.autoCommit(this.database);
			crowd.repeat(() -> {
				long start = System.nanoTime();
				sender.send("busy", "quick");
				slowest.accumulateAndGet(System.nanoTime() - start, Math::max);
				sends.incrementAndGet();
			});
			Session administrator = Session.autoCommit(this.database);
			crowd.repeat(() -> {
				administrator.value(Integer.class, "select pgque.create_queue('transient')");
				administrator.value(Long.class, "select pgque.send('transient', 'x'::text)");
				administrator.value(Integer.class, "select pgque.drop_queue('transient', true)");
				administrator.value(Integer.class, "select pgque.maint()");
			});
			crowd.runFor(2500, () -> sends.get() > 100);
			open.commit();
		}
		assertThat(sends.get()).isGreaterThan(100);
		assertThat(slowest.get() / 1_000_000).as("slowest send in milliseconds").isLessThan(200);

		this.database.query("select pgque.maint()");
		assertThat(this.database.value(Long.class,
				"select count(*) from pg_inherits where inhparent = 'pgque.event'::regclass"
						+ " and not exists (select from pgque.queue where queue_data_pfx = inhrelid::regclass::text)"))
			.isZero();
	}

	private Callable<Integer> inSession(String sql) {
		return () -> {
			try (Session session = Session.autoCommit(this.database)) {
				Integer result = session.value(Integer.class, sql);
				if (result == null) {
					throw new SQLException("no result: " + sql);
				}
				return result;
			}
		};
	}

}
