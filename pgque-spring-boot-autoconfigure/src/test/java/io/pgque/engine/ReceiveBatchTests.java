package io.pgque.engine;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for receiving batches that cover several ticks, and reading them in pages.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class ReceiveBatchTests {

	private static final String BATCH = "select msg_id, more from pgque.receive_batch(?, 'c', ?, ?)";

	private static final String PAGE = "select msg_id, more from pgque.receive_page(?, ?, ?, ?)";

	private static final long MUCH = 1_000_000;

	private final TestDatabase database;

	private final Engine engine;

	ReceiveBatchTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@Test
	void rowsCarryTheEvent() {
		String queue = this.engine.queue("c");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		this.engine.tick(queue);
		List<Message> messages = this.engine.receiveBatch(queue, "c", 10);
		long batch = this.engine.openBatch(queue, "c");
		assertThat(messages)
			.containsExactly(new Message(1, batch, "t", "x", null, messages.get(0).createdAt(), "a", "b", "c", "d"));
		assertThat(this.engine.messages("select * from pgque.receive_page(?, 0, 10, 1000)", batch)).isEqualTo(messages);
		assertThat(this.engine.receive(queue, "c")).isEqualTo(messages);
	}

	@Test
	void ticksAreMergedUpToTheBudget() {
		String queue = queueWithTicks(3, 3, 3, 3);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).extracting(Message::id)
			.containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L);
		finish(queue);
		assertThat(this.engine.position(queue, "c")).isEqualTo(4);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).extracting(Message::id).containsExactly(10L, 11L, 12L);
	}

	@ParameterizedTest
	@CsvSource({ "1, 3, 2", "3, 3, 2", "5, 3, 2", "6, 6, 3", "8, 6, 3", "9, 9, 4", "1000, 9, 4" })
	void batchHoldsAtLeastOneTickAndAtMostTheBudget(int maxRows, int size, long tick) {
		String queue = queueWithTicks(3, 3, 3);
		this.engine.receiveBatch(queue, "c", maxRows);
		assertThat(this.engine.receive(queue, "c")).hasSize(size);
		finish(queue);
		assertThat(this.engine.position(queue, "c")).isEqualTo(tick);
	}

	@Test
	void openBatchIsReturnedUnchanged() {
		String queue = queueWithTicks(2);
		List<Message> messages = this.engine.receiveBatch(queue, "c", 100);
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		assertThat(this.engine.receiveBatch(queue, "c", 100)).isEqualTo(messages);
		assertThat(this.engine.receive(queue, "c")).isEqualTo(messages);
	}

	@Test
	void batchOpenedByTheOtherFunctionsIsContinued() {
		String queue = queueWithTicks(2, 2);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(this.engine.receiveBatch(queue, "c", 100)).extracting(Message::id, Message::batch)
			.containsExactly(tuple(1L, batch), tuple(2L, batch));
	}

	@Test
	void emptyTicksAreSkipped() {
		String queue = queueWithTicks(0, 0, 2, 0, 2, 0, 0);
		assertThat(this.engine.receiveBatch(queue, "c", 100_000)).hasSize(4);
		finish(queue);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).isEmpty();
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		assertThat(this.engine.position(queue, "c")).isEqualTo(this.engine.newestTick(queue));
	}

	@Test
	void onlyEmptyTicksMoveTheConsumerWithoutABatch() {
		String queue = queueWithTicks(0, 0, 0);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).isEmpty();
		assertThat(this.engine.position(queue, "c")).isEqualTo(4);
		assertThat(this.engine.openBatch(queue, "c")).isNull();
	}

	@Test
	void withoutATickNothingIsWritten() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.inTransaction(() -> {
			assertThat(this.engine.receiveBatch(queue, "c", 10)).isEmpty();
			assertThat(this.engine.value(String.class, "select pg_current_xact_id_if_assigned()::text")).isNull();
		});
	}

	@Test
	void ticksOfOtherConsumersRedeliveriesArePassedOver() {
		String queue = this.engine.queue("c", "other");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "other");
		this.engine.nack(batch, 2, "0", null);
		this.engine.ack(batch);
		assertThat(this.engine.receiveBatch(queue, "c", 1)).hasSize(1);
		finish(queue);
		this.engine.redeliver(queue);
		this.engine.send(queue, "last");
		this.engine.tick(queue);
		assertThat(this.engine.receiveBatch(queue, "c", 1)).extracting(Message::payload).containsExactly("last");
		assertThat(this.engine.receiveBatch(queue, "other", 1)).extracting(Message::id, Message::retryCount)
			.containsExactly(tuple(2L, 1));
	}

	@Test
	void ownRedeliveriesComeInOrderOfIds() {
		String queue = queueWithTicks(3);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.nack(batch, 2, "0", null);
		this.engine.ack(batch);
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		this.engine.redeliver(queue);
		assertThat(this.engine.receiveBatch(queue, "c", 100)).extracting(Message::id, Message::retryCount)
			.containsExactly(tuple(2L, 1), tuple(4L, null), tuple(5L, null));
	}

	@Test
	void pagesByRows() {
		String queue = queueWithTicks(7);
		assertThat(this.engine.rows(BATCH, queue, 3, MUCH)).containsExactly(tuple(1L, true), tuple(2L, true),
				tuple(3L, true));
		long batch = this.engine.openBatch(queue, "c");
		assertThat(this.engine.rows(PAGE, batch, 3, 3, MUCH)).containsExactly(tuple(4L, true), tuple(5L, true),
				tuple(6L, true));
		assertThat(this.engine.rows(PAGE, batch, 6, 3, MUCH)).containsExactly(tuple(7L, false));
		assertThat(this.engine.rows(PAGE, batch, 7, 3, MUCH)).isEmpty();
		assertThat(this.engine.rows(PAGE, batch, 1, 2, MUCH)).containsExactly(tuple(2L, true), tuple(3L, true));
	}

	/**
	 * The sequence has moved by none, or by few, while a transaction with many was open.
	 */
	@ParameterizedTest
	@CsvSource({ "99, 1000, 99", "100, 1000, 100", "101, 1000, 101", "300, 1000, 300", "300, 100, 100", "300, 50, 50",
			"60, 50, 50" })
	void batchHoldsMoreThanTheSequenceTells(int late, int maxRows, int size) throws SQLException {
		String queue = this.engine.queue("c");
		try (Session open = Session.transactional(this.database)) {
			open.run("select pgque.send_batch('" + queue + "', 't', array_fill('late'::text, array[" + late + "]))");
			this.engine.send(queue, "early");
			this.engine.tick(queue);
			assertThat(this.engine.rows(BATCH, queue, maxRows, MUCH)).containsExactly(tuple(late + 1L, false));
			finish(queue);
			open.connection().commit();
		}
		this.engine.tick(queue);
		List<Tuple> rows = this.engine.rows(BATCH, queue, maxRows, MUCH);
		assertThat(rows).extracting((row) -> row.toList().get(0))
			.isEqualTo(LongStream.rangeClosed(1, size).boxed().toList());
		assertThat(rows).last().isEqualTo(tuple((long) size, size < late));
	}

	@Test
	void pageThatEndsWithTheBatchHasNoMore() {
		String queue = queueWithTicks(6);
		assertThat(this.engine.rows(BATCH, queue, 6, MUCH)).hasSize(6).last().isEqualTo(tuple(6L, false));
		long batch = this.engine.openBatch(queue, "c");
		assertThat(this.engine.rows(BATCH, queue, 5, MUCH)).last().isEqualTo(tuple(5L, true));
		assertThat(this.engine.rows(PAGE, batch, 3, 3, MUCH)).last().isEqualTo(tuple(6L, false));
		assertThat(this.engine.rows(PAGE, batch, 3, 4, MUCH)).last().isEqualTo(tuple(6L, false));
		assertThat(this.engine.rows(PAGE, batch, 2, 3, MUCH)).last().isEqualTo(tuple(5L, true));
	}

	/**
	 * Five payloads of ten bytes each.
	 */
	@ParameterizedTest
	@CsvSource({ "1, 1, true", "9, 1, true", "10, 1, true", "11, 2, true", "20, 2, true", "21, 3, true", "40, 4, true",
			"41, 5, false", "50, 5, false", "1000, 5, false" })
	void pageEndsWithTheRowThatReachesTheBytes(long maxBytes, int size, boolean more) {
		String queue = this.engine.queue("c");
		this.engine.values(Long.class, "select unnest(pgque.send_batch(?, 't', array_fill('äöü1234'::text, array[5])))",
				queue);
		this.engine.tick(queue);
		assertThat(this.engine.rows(BATCH, queue, 100, maxBytes)).hasSize(size)
			.last()
			.isEqualTo(tuple((long) size, more));
		assertThat(this.engine.rows(PAGE, this.engine.openBatch(queue, "c"), 0, 100, maxBytes)).hasSize(size);
	}

	@Test
	void payloadLargerThanThePageComesAlone() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x".repeat(5_000));
		this.engine.value(Long.class, "select pgque.send(?, null::text)", queue);
		this.engine.tick(queue);
		assertThat(this.engine.rows(BATCH, queue, 100, 1_000L)).containsExactly(tuple(1L, true));
		assertThat(this.engine.rows(PAGE, this.engine.openBatch(queue, "c"), 1, 100, 1_000L))
			.containsExactly(tuple(2L, false));
	}

	/**
	 * Few but large: of what lies outside of the rows, no more is read than a page holds.
	 */
	@Test
	void fewLargeEventsNeedNoMoreMemoryThanAPage() {
		String queue = this.engine.queue("c");
		this.engine.value(Long.class,
				"select count(pgque.send(?, 't'::text, repeat('x', 40000000))) from generate_series(1, 30)", queue);
		this.engine.tick(queue);
		assertThat(this.engine.rows(BATCH, queue, 100, MUCH)).containsExactly(tuple(1L, true));
	}

	@ParameterizedTest
	@CsvSource({ "type", "extra1", "extra4" })
	void otherColumnsCountForWhatIsReadAtOnce(String column) {
		String queue = this.engine.queue("c");
		String arguments = switch (column) {
			case "type" -> "repeat('x', 20000000), '', null, null, null, null";
			case "extra1" -> "'t', '', repeat('x', 20000000), null, null, null";
			default -> "'t', '', null, null, null, repeat('x', 20000000)";
		};
		this.engine.value(Long.class,
				"select count(pgque.insert_event(?, " + arguments + ")) from generate_series(1, 60)", queue);
		this.engine.tick(queue);
		assertThat(
				this.engine.value(Long.class, "select count(*) from pgque.receive_batch(?, 'c', 100, 1000000)", queue))
			.isEqualTo(60);
	}

	@Test
	void readersThatAreMissingAreMadeByTheMaintenance() {
		String queue = queueWithTicks(1);
		int id = this.engine.value(Integer.class, "select queue_id from pgque.queue where queue_name = ?", queue);
		this.database.query("select pgque_internal.drop_readers(?)", id);
		this.database.query("select pgque.maint_engine()");
		assertThat(this.engine.rows(BATCH, queue, 10, MUCH)).containsExactly(tuple(1L, false));
	}

	@Test
	void largeBatchIsReadInPagesWithoutLossOrRepetition() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 5_000);
		this.engine.tick(queue);
		List<Tuple> rows = new ArrayList<>(this.engine.rows(BATCH, queue, 700, MUCH));
		long batch = this.engine.openBatch(queue, "c");
		while (rows.get(rows.size() - 1).toList().get(1).equals(true)) {
			rows.addAll(this.engine.rows(PAGE, batch, rows.get(rows.size() - 1).toList().get(0), 700, MUCH));
		}
		assertThat(rows).extracting((row) -> row.toList().get(0))
			.isEqualTo(java.util.stream.LongStream.rangeClosed(1, 5_000).boxed().toList());
	}

	@Test
	void pageNeedsAnOpenBatch() {
		String queue = queueWithTicks(2);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.ack(batch);
		for (Long id : new Long[] { batch, 987654321L, null }) {
			assertThat(this.engine.error(PAGE, id, 0, 10, MUCH)).satisfies((error) -> {
				assertThat(error.state()).isEqualTo("P0001");
				assertThat(error.message()).startsWith("batch not found");
			});
		}
	}

	@ParameterizedTest
	@CsvSource(nullValues = "NULL", value = { "0, 10", "-1, 10", "NULL, 10", "10, 0", "10, -1", "10, NULL" })
	void pageNeedsRoom(Integer maxRows, Long maxBytes) {
		String queue = queueWithTicks(2);
		assertThat(this.engine.error(BATCH, queue, maxRows, maxBytes).message()).contains("max_rows", "max_bytes");
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		assertThat(this.engine.error(PAGE, this.engine.nextBatch(queue, "c"), 0, maxRows, maxBytes).message())
			.contains("max_rows", "max_bytes");
	}

	@Test
	void manyEmptyTicksAreCaughtUpWithQuickly() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		this.engine.inTransaction(() -> {
			this.engine.update("insert into pgque.tick (tick_queue, tick_id, tick_event_seq, tick_event_slots)"
					+ " select ?, n, 0, 0 from generate_series(2, 50001) n", id);
			this.engine.value(Long.class, "select setval('pgque.event_' || ? || '_tick_seq', 50001)", id);
		});
		this.engine.send(queue, "x");
		assertThat(this.engine.tick(queue)).isEqualTo(50_002);
		List<Duration> durations = new ArrayList<>();
		for (int i = 0; i < 3; i++) {
			this.engine.rolledBack(() -> {
				long start = System.nanoTime();
				assertThat(this.engine.receiveBatch(queue, "c", 100)).hasSize(1);
				durations.add(Duration.ofNanos(System.nanoTime() - start));
			});
		}
		assertThat(durations).as("one of three, on a busy machine")
			.anyMatch((duration) -> duration.compareTo(Duration.ofSeconds(1)) < 0);
		assertThat(this.engine.receiveBatch(queue, "c", 100)).extracting(Message::payload).containsExactly("x");
		finish(queue);
		assertThat(this.engine.position(queue, "c")).isEqualTo(50_002);
	}

	@Test
	void manyTicksWithEventsAreMergedInOneCall() {
		String queue = this.engine.queue("c");
		for (int i = 0; i < 60; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
		}
		assertThat(this.engine.receiveBatch(queue, "c", 50)).hasSize(50);
		finish(queue);
		assertThat(this.engine.receiveBatch(queue, "c", 50)).hasSize(10);
	}

	@Test
	void catchingUpIsTenTimesAsFastAsABatchForEachTick() {
		String queue = this.engine.queue("c", "each");
		int ticks = 2000;
		for (int i = 0; i < ticks; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
		}
		long begin = System.nanoTime();
		int merged = 0;
		for (List<Message> batch = this.engine.receiveBatch(queue, "c", 1000); !batch.isEmpty(); batch = this.engine
			.receiveBatch(queue, "c", 1000)) {
			merged += batch.size();
			finish(queue);
		}
		long together = System.nanoTime() - begin;
		begin = System.nanoTime();
		int single = 0;
		for (Long batch = this.engine.nextBatch(queue, "each"); batch != null; batch = this.engine.nextBatch(queue,
				"each")) {
			single += this.engine.values(Long.class, "select ev_id from pgque.get_batch_events(?)", batch).size();
			this.engine.ack(batch);
		}
		assertThat(merged).isEqualTo(single).isEqualTo(ticks);
		assertThat((System.nanoTime() - begin) / (double) together).isGreaterThanOrEqualTo(10);
	}

	/**
	 * A queue with a consumer that has these numbers of events to receive, a tick each.
	 */
	private String queueWithTicks(int... sizes) {
		String queue = this.engine.queue("c");
		for (int size : sizes) {
			if (size > 0) {
				this.engine.send(queue, size);
				this.engine.tick(queue);
			}
			else {
				this.engine.tickEmpty(queue);
			}
		}
		return queue;
	}

	private void finish(String queue) {
		assertThat(this.engine.ack(this.engine.openBatch(queue, "c"))).isEqualTo(1);
	}

}
