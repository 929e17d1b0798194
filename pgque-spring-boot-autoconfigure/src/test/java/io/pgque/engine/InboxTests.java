package io.pgque.engine;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Which messages a consumer has handled.
 */
@PgqueDatabase
class InboxTests {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	TestDatabase database;

	private Engine engine;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.engine = new Engine(this.database.dataSource());
		this.queue = "inbox-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'one'), pgque.subscribe(?, 'two')",
				this.queue, this.queue, this.queue);
		this.database.update("update pgque_internal.inbox_ring set inbox_switched = now(), inbox_retention = '7 days'");
	}

	private boolean add(String consumer, long id) {
		return this.database.value(Boolean.class, "select pgque.inbox_add(?, ?, ?)", this.queue, consumer, id);
	}

	private boolean add(Connection connection, long id) throws SQLException {
		try (PreparedStatement statement = connection.prepareStatement("select pgque.inbox_add(?, 'one', ?)")) {
			statement.setString(1, this.queue);
			statement.setLong(2, id);
			try (ResultSet row = statement.executeQuery()) {
				row.next();
				return row.getBoolean(1);
			}
		}
	}

	@Test
	void messageIsNewOnceForAConsumer() {
		assertThat(add("one", 7)).isTrue();
		assertThat(add("one", 7)).isFalse();
		assertThat(add("two", 7)).isTrue();
		assertThat(add("one", 8)).isTrue();
	}

	@ParameterizedTest
	@ValueSource(booleans = { true, false })
	void whoHandlesTheSameMessageWaits(boolean commit) throws Exception {
		try (Connection first = this.database.connect(); Connection second = this.database.connect()) {
			first.setAutoCommit(false);
			assertThat(add(first, 7)).isTrue();
			// The tables turn in between.
			turn();
			CompletableFuture<Boolean> other = CompletableFuture.supplyAsync(() -> {
				try {
					return add(second, 7);
				}
				catch (SQLException ex) {
					throw new IllegalStateException(ex);
				}
			});
			await().until(() -> this.database.value(Integer.class,
					"select count(*)::int from pg_stat_activity where wait_event_type = 'Lock' and query like '%inbox_add%'"
							+ " and datname = current_database()") == 1);
			if (commit) {
				first.commit();
			}
			else {
				first.rollback();
			}
			assertThat(other.get(10, TimeUnit.SECONDS)).isNotEqualTo(commit);
		}
	}

	@Test
	void notesAreKeptForTheRetentionAndGoWithTheirTable() {
		assertThat(add("one", 7)).isTrue();
		assertThat(turn()).isOne();
		assertThat(add("one", 8)).isTrue();
		assertThat(add("one", 7)).isFalse();
		assertThat(turn()).isOne();
		assertThat(add("one", 8)).isFalse();
		assertThat(add("one", 7)).as("it is older than the retention").isTrue();
		assertThat(rows()).isEqualTo(3);
		this.database.query("select pgque.maint()");
		assertThat(rows()).isEqualTo(2);
		assertThat(this.database.value(Long.class,
				"select sum(pg_stat_get_tuples_deleted(c.oid))::bigint from pg_class c where c.relname like 'inbox\\__'"))
			.isZero();
	}

	private long rows() {
		return this.database.value(Long.class, "select count(*) from (select from pgque_internal.inbox_0"
				+ " union all select from pgque_internal.inbox_1 union all select from pgque_internal.inbox_2) n");
	}

	/**
	 * The retention passes, and maintenance comes.
	 */
	private int turn() {
		this.database.update("update pgque_internal.inbox_ring set inbox_switched = now() - inbox_retention");
		int before = slot();
		this.database.query("select pgque.maint()");
		return Math.floorMod(slot() - before, 3);
	}

	private int slot() {
		return this.database.value(Integer.class, "select inbox_slot::int from pgque_internal.inbox_ring");
	}

	@Test
	void tablesDoNotTurnBeforeTheRetention() {
		this.database.query("select pgque.set_inbox_retention('2 days')");
		this.database.update("update pgque_internal.inbox_ring set inbox_switched = now() - interval '47 hours'");
		int before = slot();
		this.database.query("select pgque.maint()");
		assertThat(slot()).isEqualTo(before);
		this.database.query("select pgque.set_inbox_retention('46 hours')");
		this.database.query("select pgque.maint()");
		assertThat(slot()).isNotEqualTo(before);
	}

	/**
	 * At each moment somebody looks into the inbox, in a transaction that begins before
	 * the one before it ends.
	 */
	@Test
	void tablesTurnAndAreEmptiedUnderUnbrokenTraffic() throws Exception {
		add("one", 1);
		try (Connection first = this.database.connect(); Connection second = this.database.connect()) {
			first.setAutoCommit(false);
			second.setAutoCommit(false);
			add(first, 100);
			for (int round = 0; round < 6; round++) {
				add(second, 200 + round);
				first.commit();
				assertThat(turn()).as("turn %s", round).isOne();
				add(first, 300 + round);
				second.commit();
				assertThat(rows()).as("notes of the last two rounds, and what is to be emptied next")
					.isLessThanOrEqualTo(9);
			}
			assertThat(slowest(first, second)).isLessThan(500);
		}
	}

	/**
	 * Nobody waits for maintenance.
	 */
	private long slowest(Connection first, Connection second) throws SQLException {
		long slowest = 0;
		for (int i = 0; i < 20; i++) {
			long begin = System.nanoTime();
			add((i % 2 == 0) ? first : second, 1000 + i);
			((i % 2 == 0) ? second : first).commit();
			slowest = Math.max(slowest, (System.nanoTime() - begin) / 1_000_000);
			this.database.query("select pgque.maint()");
		}
		first.commit();
		second.commit();
		return slowest;
	}

	@Test
	void emptyingWaitsForNobody() throws Exception {
		add("one", 7);
		turn();
		try (Connection old = this.database.connect()) {
			old.setAutoCommit(false);
			add(old, 8);
			turn();
			turn();
			assertThat(rows()).as("one of the tables is in use").isPositive();
			assertThat(turn()).as("without an empty table there is no turn").isZero();
			assertThat(add("one", 8 + 1)).isTrue();
		}
		assertThat(turn()).isOne();
	}

	@Test
	void whatCannotBeNotedSaysWhy() {
		assertThat(this.engine.error("select pgque.inbox_add('nowhere', 'one', 1)").message())
			.contains("queue not found: nowhere");
		assertThat(this.engine.error("select pgque.inbox_add('" + this.queue + "', 'nobody', 1)").message())
			.contains("consumer not registered: nobody");
		assertThat(this.engine.error("select pgque.set_inbox_retention('0')").message())
			.contains("retention must be a positive interval");
	}

}
