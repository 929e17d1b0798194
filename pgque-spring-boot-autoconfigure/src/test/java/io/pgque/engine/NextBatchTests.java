package io.pgque.engine;

import java.util.List;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for opening batches and reading them by their id.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class NextBatchTests {

	private static final String BATCH_COLUMNS = "batch_id bigint, cur_tick_id bigint, prev_tick_id bigint,"
			+ " cur_tick_time timestamp with time zone, prev_tick_time timestamp with time zone,"
			+ " cur_tick_event_seq bigint, prev_tick_event_seq bigint";

	private static final String EVENT_COLUMNS = "ev_id bigint, ev_time timestamp with time zone, ev_txid bigint,"
			+ " ev_retry integer, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text";

	private final Engine engine;

	NextBatchTests(TestDatabase database) {
		this.engine = new Engine(database);
	}

	@Test
	void columnsOfABatch() {
		assertThat(outputs("next_batch_info")).containsExactly(BATCH_COLUMNS);
		assertThat(outputs("next_batch_custom")).containsExactlyInAnyOrder(BATCH_COLUMNS,
				"batch_id bigint, prev_tick_id bigint, next_tick_id bigint");
	}

	@Test
	void columnsOfEvents() {
		assertThat(outputs("get_batch_events")).containsExactly(EVENT_COLUMNS);
		assertThat(outputs("get_batch_cursor")).containsExactly(EVENT_COLUMNS, EVENT_COLUMNS);
	}

	@Test
	void batchRunsFromTheCursorToTheNextTick() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		Tuple batch = info(queue);
		int id = this.engine.idOf(queue);
		assertThat(batch)
			.isEqualTo(tuple(this.engine.openBatch(queue, "c"), 2L, 1L, timeOf(id, 2), timeOf(id, 1), 2L, 0L));
		assertThat(this.engine.nextBatch(queue, "c")).isEqualTo(batch.toList().get(0));
	}

	@Test
	void openBatchIsReturnedUnchanged() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		Tuple batch = info(queue);
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		assertThat(info(queue)).isEqualTo(batch);
		assertThat(custom(queue, "1 hour", 1000, "1 hour")).isEqualTo(batch);
	}

	@Test
	void withoutATickThereIsNoBatch() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.nextBatch(queue, "c")).isNull();
		assertThat(info(queue)).isEqualTo(tuple(null, null, null, null, null, null, null));
		assertThat(custom(queue, null, 1, null)).isEqualTo(tuple(null, null, null, null, null, null, null));
	}

	@Test
	void batchIdsAreNeverUsedTwice() {
		String queue = this.engine.queue("c1", "c2");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		long first = this.engine.nextBatch(queue, "c1");
		long second = this.engine.nextBatch(queue, "c2");
		assertThat(second).isGreaterThan(first);
		this.engine.ack(first);
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		assertThat(this.engine.nextBatch(queue, "c1")).isGreaterThan(second);
	}

	/**
	 * Ticks 1001 to 1004 lie 10, 20, 25 and 30 events behind the cursor, and were taken
	 * 40, 30, 25 and 20 minutes ago, when the cursor's was 50 minutes ago.
	 */
	@ParameterizedTest
	@CsvSource(nullValues = "NULL",
			value = { "NULL, NULL, NULL, 1001", "25 minutes, NULL, NULL, 1001", "45 minutes, NULL, NULL, NULL",
					// as many events as wanted, at most twice as many: up to the newest
					// tick
					"NULL, 30, NULL, 1004", "NULL, 15, NULL, 1004", "NULL, 31, NULL, NULL",
					// more than twice as many: up to the first that is enough
					"NULL, 14, NULL, 1002", "NULL, 10, NULL, 1001", "NULL, 1, NULL, 1001",
					// the same by time
					"NULL, NULL, 30 minutes, 1004", "NULL, NULL, 15 minutes, 1004", "NULL, NULL, 31 minutes, NULL",
					"NULL, NULL, 14 minutes, 1002", "NULL, NULL, 1 minute, 1001",
					// either will do
					"NULL, 1000, 20 minutes, 1004", "NULL, 20, 1 hour, 1004", "NULL, 1000, 1 hour, NULL",
					"NULL, 1000, 14 minutes, 1002", "NULL, 14, 1 hour, 1002",
					// the chosen tick must be old enough
					"15 minutes, 30, NULL, 1004", "25 minutes, 30, NULL, NULL", "25 minutes, 14, NULL, 1002" })
	void endOfACustomBatch(String minLag, Integer minCount, String minInterval, Long tick) {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		this.engine.update("delete from pgque.tick where tick_queue = ?", id);
		this.engine.update("""
				insert into pgque.tick (tick_queue, tick_id, tick_time, tick_event_seq)
				select ?, id, now() - m * interval '1 minute', e
				from (values (1, 50, 0), (1001, 40, 10), (1002, 30, 20), (1003, 25, 25), (1004, 20, 30)) t (id, m, e)
				""", id);
		List<Object> batch = custom(queue, minLag, minCount, minInterval).toList();
		assertThat(batch.get(1)).isEqualTo(tick);
		assertThat(batch.get(2)).isEqualTo((tick != null) ? 1L : null);
		assertThat(batch.get(0)).isEqualTo(this.engine.openBatch(queue, "c"));
	}

	@Test
	void customBatchCoversSeveralTicks() {
		String queue = this.engine.queue("c");
		for (int i = 0; i < 3; i++) {
			this.engine.send(queue, 2);
			this.engine.tick(queue);
		}
		assertThat(custom(queue, null, 6, null).toList()).contains(4L, 1L);
		assertThat(this.engine.receive(queue, "c")).hasSize(6);
		this.engine.ack(this.engine.openBatch(queue, "c"));
		assertThat(this.engine.position(queue, "c")).isEqualTo(4);
	}

	@Test
	void tickHelperFindsTheEnd() {
		String queue = this.engine.queue();
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		int id = this.engine.idOf(queue);
		String helper = "select * from pgque.find_tick_helper(?, 1, ?, 0, ?, null)";
		assertThat(this.engine.row(helper, id, timeOf(id, 1), 2L)).isEqualTo(tuple(2L, timeOf(id, 2), 2L));
		assertThat(this.engine.row(helper, id, timeOf(id, 1), 3L)).isEqualTo(tuple(null, null, null));
	}

	@Test
	void missingTickIsCorruption() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		this.engine.update("delete from pgque.tick where tick_queue = ? and tick_id = 1", this.engine.idOf(queue));
		SqlError error = this.engine.error("select pgque.next_batch(?, 'c')", queue);
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(error.message()).contains("PgQ corruption");
		assertThat(this.engine.error("select * from pgque.receive_batch(?, 'c', 10, 1000)", queue).message())
			.contains("PgQ corruption");
		this.engine.value(Integer.class, "select pgque.register_consumer_at(?, 'c', 2)", queue);
		assertThat(this.engine.nextBatch(queue, "c")).as("moved to an existing tick").isNull();
	}

	@Test
	void eventsOfABatchInOrder() {
		String queue = this.engine.queue("c");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		this.engine.send(queue, "y");
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(
				this.engine.rows("select ev_id, ev_retry, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4,"
						+ " ev_txid = (select min(e.ev_txid::text::bigint) from pgque.event_" + this.engine.idOf(queue)
						+ " e where e.ev_id = b.ev_id) from pgque.get_batch_events(?) b", batch))
			.containsExactly(tuple(1L, null, "t", "x", "a", "b", "c", "d", true),
					tuple(2L, null, "test", "y", null, null, null, null, true));
	}

	@Test
	void unknownBatch() {
		for (String batch : new String[] { "987654321", "null" }) {
			assertThat(this.engine.error("select * from pgque.get_batch_events(" + batch + ")"))
				.satisfies((error) -> assertThat(error.state()).isEqualTo("P0001"))
				.satisfies((error) -> assertThat(error.message()).startsWith("batch not found"));
			assertThat(this.engine.error("select * from pgque.batch_event_tables(" + batch + ")").message())
				.contains("Cannot find data for batch");
		}
	}

	@Test
	void finishedBatchIsUnknown() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.ack(batch);
		assertThat(this.engine.error("select * from pgque.get_batch_events(?)", batch).message())
			.startsWith("batch not found");
	}

	@Test
	void tablesAndQueryOfABatch() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		String table = "pgque.event_" + this.engine.idOf(queue) + "_0";
		assertThat(this.engine.values(String.class, "select pgque.batch_event_tables(?)", batch))
			.containsExactly(table);
		String query = this.engine.value(String.class, "select pgque.batch_event_sql(?)", batch);
		assertThat(query).contains(table);
		assertThat(this.engine.rows(query))
			.isEqualTo(this.engine.rows("select * from pgque.get_batch_events(?)", batch))
			.hasSize(2);
	}

	@Test
	void cursorReturnsTheFirstRowsAndKeepsTheRest() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 5);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.inTransaction(() -> {
			assertThat(ids("select ev_id from pgque.get_batch_cursor(?, 'My cursor', 2)", batch)).containsExactly(1L,
					2L);
			assertThat(ids("fetch 2 from \"My cursor\"")).containsExactly(3L, 4L);
			assertThat(this.engine
				.rows("select name, is_scrollable, is_holdable from pg_cursors where name = 'My cursor'"))
				.containsExactly(tuple("My cursor", false, false));
			assertThat(ids("fetch all from \"My cursor\"")).containsExactly(5L);
		});
	}

	@Test
	void cursorFiltersByTheCallersCondition() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 6);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.inTransaction(() -> {
			assertThat(ids("select ev_id from pgque.get_batch_cursor(?, 'cur', 2, 'ev_id % 2 = 0')", batch))
				.containsExactly(2L, 4L);
			assertThat(ids("fetch all from cur")).containsExactly(6L);
		});
	}

	@Test
	void cursorMayBeOpenedOnly() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.inTransaction(() -> {
			assertThat(ids("select ev_id from pgque.get_batch_cursor(?, 'zero', 0)", batch)).isEmpty();
			assertThat(ids("select ev_id from pgque.get_batch_cursor(?, 'less', -1, null)", batch)).isEmpty();
			assertThat(ids("fetch all from zero")).containsExactly(1L, 2L);
			assertThat(ids("fetch all from less")).containsExactly(1L, 2L);
		});
	}

	@Test
	void cursorNeedsItsArguments() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.inTransaction(() -> {
			assertThat(ids("select ev_id from pgque.get_batch_cursor(null, 'cur', 1)")).isEmpty();
			assertThat(ids("select ev_id from pgque.get_batch_cursor(?, null, 1)", batch)).isEmpty();
			assertThat(ids("select ev_id from pgque.get_batch_cursor(?, 'cur', null)", batch)).isEmpty();
			assertThat(ids("select ev_id from pgque.get_batch_cursor(null, 'cur', 1, 'true')")).isEmpty();
			assertThat(this.engine.rows("select name from pg_cursors where name = 'cur'")).isEmpty();
		});
	}

	private Tuple info(String queue) {
		return this.engine.row("select * from pgque.next_batch_info(?, 'c')", queue);
	}

	private Tuple custom(String queue, String minLag, Integer minCount, String minInterval) {
		return this.engine.row("select * from pgque.next_batch_custom(?, 'c', ?::interval, ?::int4, ?::interval)",
				queue, minLag, minCount, minInterval);
	}

	private Object timeOf(int queueId, long tick) {
		return this.engine.row("select tick_time from pgque.tick where tick_queue = ? and tick_id = ?", queueId, tick)
			.toList()
			.get(0);
	}

	private List<Long> ids(String sql, Object... arguments) {
		return this.engine.rows(sql, arguments).stream().map((row) -> (Long) row.toList().get(0)).toList();
	}

	/**
	 * The output columns of a function's overloads.
	 */
	private List<String> outputs(String function) {
		return this.engine.values(String.class, """
				select string_agg(n || ' ' || format_type(t, null), ', ' order by i)
				from pg_catalog.pg_proc p
				cross join unnest(p.proargnames, p.proallargtypes, p.proargmodes) with ordinality a (n, t, m, i)
				where p.pronamespace = 'pgque'::regnamespace and p.proname = ? and m = 'o'
				group by p.oid
				""", function);
	}

}
