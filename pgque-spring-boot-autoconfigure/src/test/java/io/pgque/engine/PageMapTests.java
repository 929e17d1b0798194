package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for reading large batches by a map of their pages.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class PageMapTests {

	private static final String MAP = "select p::text from pgque.batch_pages(?, ?, ?) p";

	private static final String PAGE = "select msg_id, more from pgque.receive_mapped_page(?, ?, ?::pgque.batch_page, ?)";

	private static final long MUCH = 1_000_000;

	private final TestDatabase database;

	private final Engine engine;

	PageMapTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@ParameterizedTest
	@ValueSource(ints = { 1, 7, 8, 21, 50, 1000 })
	void pagesAreTheBatchInOrder(int size) {
		long batch = open(this.engine.queue("c"), 50);
		List<String> map = map(batch, null, size);
		assertThat(map).hasSize((50 + size - 1) / size);
		for (int i = 0; i < map.size(); i++) {
			long first = (long) i * size + 1;
			assertThat(ids(batch, map.get(i)))
				.isEqualTo(LongStream.rangeClosed(first, Math.min(first + size - 1, 50)).boxed().toList());
		}
	}

	@Test
	void rowsAreTheOnesOfTheOtherFunctions() {
		String queue = this.engine.queue("c");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		this.engine.tick(queue);
		List<Message> messages = this.engine.receiveBatch(queue, "c", 10);
		long batch = this.engine.openBatch(queue, "c");
		assertThat(this.engine.messages("select * from pgque.receive_mapped_page(?, null, ?::pgque.batch_page, 1000)",
				batch, map(batch, null, 5).get(0)))
			.isEqualTo(messages);
	}

	@Test
	void mapIsOfWhatIsBehindAnId() {
		long batch = open(this.engine.queue("c"), 10);
		assertThat(map(batch, 4L, 4)).hasSize(2)
			.satisfiesExactly((page) -> assertThat(ids(batch, page)).containsExactly(5L, 6L, 7L, 8L),
					(page) -> assertThat(ids(batch, page)).containsExactly(9L, 10L));
		assertThat(map(batch, 10L, 4)).isEmpty();
	}

	@Test
	void pageThatHasTooManyBytesIsCut() {
		String queue = this.engine.queue("c");
		this.engine.values(Long.class,
				"select unnest(pgque.send_batch(?, 't', array_fill('1234567890'::text, array[9])))", queue);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		String page = map(batch, 2L, 5).get(0);
		assertThat(this.engine.rows(PAGE, batch, 2, page, 20)).containsExactly(tuple(3L, true), tuple(4L, true));
		assertThat(this.engine.rows(PAGE, batch, 4, page, 20)).containsExactly(tuple(5L, true), tuple(6L, true));
		assertThat(this.engine.rows(PAGE, batch, 6, page, 20)).containsExactly(tuple(7L, false));
		assertThat(this.engine.rows(PAGE, batch, 7, page, 20)).isEmpty();
		assertThat(this.engine.rows(PAGE, batch, null, page, MUCH)).hasSize(5).last().isEqualTo(tuple(7L, false));
	}

	/**
	 * Events of transactions that were open at one tick or both, in all slots, among
	 * those of other ticks.
	 */
	@Test
	void rowsOfOtherBatchesAreLeftOut() throws SQLException {
		String queue = this.engine.queue("c");
		try (Session first = Session.transactional(this.database);
				Session second = Session.transactional(this.database);
				Session third = Session.transactional(this.database)) {
			send(first, queue, 3);
			this.engine.send(queue, 5);
			send(second, queue, 3);
			turn(queue);
			send(first, queue, 3);
			this.engine.tick(queue);
			send(third, queue, 3);
			first.connection().commit();
			this.engine.send(queue, 5);
			turn(queue);
			send(second, queue, 3);
			second.connection().commit();
			this.engine.send(queue, 5);
			this.engine.tick(queue);
			third.connection().commit();
			this.engine.send(queue, 5);
			this.engine.tick(queue);
		}
		List<Integer> sizes = new ArrayList<>();
		for (Long batch = this.engine.nextBatch(queue, "c"); batch != null; batch = this.engine.nextBatch(queue, "c")) {
			List<Long> expected = this.engine.values(Long.class, "select ev_id from pgque.get_batch_events(?)", batch);
			List<Long> read = new ArrayList<>();
			for (String page : map(batch, null, 4)) {
				read.addAll(ids(batch, page));
			}
			assertThat(read).isEqualTo(expected);
			// Many rows at once are found by their places too.
			assertThat(this.engine.messages("select * from pgque.receive(?, 'c', null)", queue))
				.isEqualTo(this.engine.messages("select * from pgque.receive(?, 'c', 10000)", queue))
				.extracting(Message::id)
				.isEqualTo(expected);
			sizes.add(read.size());
			this.engine.ack(batch);
		}
		assertThat(sizes).containsExactly(5, 22, 8);
	}

	@Test
	void rowsThatMovedAreFound() {
		String queue = this.engine.queue("c");
		try {
			this.engine.rolledBack(() -> this.engine.send(queue, 500));
			long batch = open(queue, 50);
			List<String> map = map(batch, null, 20);
			List<List<Long>> before = map.stream().map((page) -> ids(batch, page)).toList();
			this.engine.execute("vacuum full pgque.event_" + this.engine.idOf(queue) + "_0");
			assertThat(map.stream().map((page) -> ids(batch, page)).toList()).isEqualTo(before);
			assertThat(map(batch, null, 20)).doesNotContainAnyElementsOf(map);
		}
		finally {
			this.engine.value(Integer.class, "select pgque.drop_queue(?, true)", queue);
		}
	}

	@Test
	void settledPrefixIsLeftOut() {
		String queue = this.engine.queue("c");
		this.engine.row("select pgque.settle(?, 4, '{}', '{}', '{}', '{}')", open(queue, 10));
		long batch = this.engine.receiveBatch(queue, "c", 1).get(0).batch();
		assertThat(map(batch, null, 4)).hasSize(2)
			.first()
			.satisfies((page) -> assertThat(ids(batch, page)).containsExactly(5L, 6L, 7L, 8L));
	}

	@Test
	void redeliveriesOfOthersAreLeftOut() {
		String queue = this.engine.queue("c", "other");
		for (String consumer : List.of("c", "other")) {
			long batch = consumer.equals("c") ? open(queue, 4) : this.engine.nextBatch(queue, consumer);
			this.engine.nack(batch, consumer.equals("c") ? 1 : 2, "0", null);
			this.engine.ack(batch);
		}
		this.engine.redeliver(queue);
		for (Tuple expected : List.of(tuple("c", 1L), tuple("other", 2L))) {
			long batch = this.engine.receiveBatch(queue, (String) expected.toList().get(0), 9).get(0).batch();
			assertThat(map(batch, null, 4)).singleElement()
				.satisfies((page) -> assertThat(ids(batch, page)).containsExactly((Long) expected.toList().get(1)));
		}
	}

	@Test
	void mapNeedsAnOpenBatch() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 3);
		String page = map(batch, null, 3).get(0);
		this.engine.ack(batch);
		for (Long id : new Long[] { batch, 987654321L, null }) {
			assertThat(this.engine.error(MAP, id, 0, 10).message()).startsWith("batch not found");
			assertThat(this.engine.error(PAGE, id, 0, page, MUCH).message()).startsWith("batch not found");
		}
	}

	@ParameterizedTest
	@CsvSource(nullValues = "NULL", value = { "0", "-1", "NULL" })
	void mapNeedsRoom(Integer size) {
		long batch = open(this.engine.queue("c"), 3);
		assertThat(this.engine.error(MAP, batch, 0, size).message()).contains("max_rows >= 1");
		assertThat(this.engine.error(PAGE, batch, 0, map(batch, null, 3).get(0), size).message())
			.contains("max_bytes >= 1");
		assertThat(this.engine.error(PAGE, batch, 0, null, 1L).message()).contains("max_rows >= 1");
	}

	private long open(String queue, int events) {
		this.engine.send(queue, events);
		this.engine.tick(queue);
		return this.engine.nextBatch(queue, "c");
	}

	private List<String> map(long batch, Long after, int size) {
		return this.engine.values(String.class, MAP, batch, after, size);
	}

	private List<Long> ids(long batch, String page) {
		return this.engine.values(Long.class,
				"select msg_id from pgque.receive_mapped_page(?, null, ?::pgque.batch_page, 1000000)", batch, page);
	}

	private void turn(String queue) {
		this.engine.update("update pgque.queue set queue_cur_table = (queue_cur_table + 1) % 3 where queue_name = ?",
				queue);
	}

	private static void send(Session session, String queue, int count) throws SQLException {
		session.column(Long.class, "select unnest(pgque.send_batch(?, 't', array_fill('x'::text, array[?])))", queue,
				count);
	}

}
