package io.pgque.engine;

import java.time.Duration;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * A snapshot that another session holds keeps nothing of ours alive, since nothing is
 * updated or deleted.
 */
@PgqueDatabase
class HeldSnapshotTests {

	private static final int BATCHES = 1500;

	@Test
	void eventsTicksAndCursorsHaveNoDeadRows(TestDatabase database) throws Exception {
		database.query("select pgque.create_queue('held'), pgque.subscribe('held', 'consumer')");
		try (Session holder = Session.repeatableRead(database)) {
			holder.value(Long.class, "select count(*) from pgque.queue");
			try (Session session = Session.autoCommit(database)) {
				for (int i = 0; i < BATCHES; i++) {
					session.send("held", "event " + i);
					session.value(Long.class, "select count(*) from pgque.tick_now()");
					assertThat(session.consume("held", "consumer")).hasSize(1);
				}
			}
			// A session reports what it did when it ends, if not before.
			String counters = "select coalesce(sum(%s), 0) from pg_stat_user_tables"
					+ " where relname ~ '^(event|tick|cursor)_'";
			Awaitility.await()
				.atMost(Duration.ofSeconds(20))
				.untilAsserted(() -> assertThat(database.value(Long.class, counters.formatted("n_tup_ins")))
					.isGreaterThanOrEqualTo(BATCHES * 4L));
			assertThat(database.value(Long.class, counters.formatted("n_dead_tup"))).isZero();
			assertThat(database.value(Long.class, counters.formatted("n_tup_upd + n_tup_del"))).isZero();
		}
	}

}
