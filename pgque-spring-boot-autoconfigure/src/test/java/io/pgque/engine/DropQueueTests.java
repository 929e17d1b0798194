package io.pgque.engine;

import java.sql.SQLException;
import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for dropping queues whose tables, or those of others, are in use.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class DropQueueTests {

	private final TestDatabase database;

	private final Engine engine;

	DropQueueTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@Test
	void tablesOutliveOpenSendersOfOtherQueues() throws SQLException {
		String queue = this.engine.queue("c");
		String other = this.engine.queue();
		int id = this.engine.idOf(queue);
		try (Session sender = Session.transactional(this.database)) {
			sender.send(other, "x");
			assertThat(this.engine.value(Integer.class, "select pgque.drop_queue(?, true)", queue)).isEqualTo(1);
			assertThat(this.engine.rows("select * from pgque.queue where queue_id = ?", id)).isEmpty();
			assertThat(relations(id)).isNotEmpty();
			maint();
			assertThat(relations(id)).isNotEmpty();
			this.engine.value(Integer.class, "select pgque.create_queue(?)", queue);
			assertThat(this.engine.send(queue, "new")).isEqualTo(1);
			sender.connection().commit();
		}
		assertThat(maint()).isEqualTo(1);
		assertThat(relations(id)).isEmpty();
		assertThat(this.engine.send(queue, "new")).isEqualTo(2);
		assertThat(this.engine.send(other, "x")).isEqualTo(2);
	}

	@ParameterizedTest
	@ValueSource(strings = { "select from pgque.event_%d_0", "select from pgque.event_%d",
			"select nextval('pgque.event_%d_id_seq')", "select last_value from pgque.event_%d_tick_seq" })
	void whoeverUsesTheQueueIsNotWaitedFor(String use) throws SQLException {
		String queue = this.engine.queue();
		String other = this.engine.queue();
		int id = this.engine.idOf(queue);
		try (Session user = Session.transactional(this.database)) {
			user.run(use.formatted(id));
			this.engine.inTransaction(() -> {
				this.engine.execute("set local statement_timeout = '5s'");
				assertThat(this.engine.value(Integer.class, "select pgque.drop_queue(?)", queue)).isEqualTo(1);
			});
			assertThat(relations(id)).isNotEmpty();
			this.engine.inTransaction(() -> {
				this.engine.execute("set local statement_timeout = '5s'");
				assertThat(this.engine.warnings("select pgque.maint()")).isEmpty();
			});
			assertThat(this.engine.send(other, "x")).isEqualTo(1);
			user.connection().rollback();
		}
		maint();
		assertThat(relations(id)).isEmpty();
	}

	private int maint() {
		return this.engine.value(Integer.class, "select pgque.maint()");
	}

	private List<String> relations(int queueId) {
		return this.engine.values(String.class,
				"select relname::text from pg_catalog.pg_class"
						+ " where relnamespace = 'pgque'::regnamespace and relname ~ ('^event_' || ? || '(_|$)')",
				queueId);
	}

}
