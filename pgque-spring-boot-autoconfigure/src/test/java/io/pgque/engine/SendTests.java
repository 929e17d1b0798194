package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.Engine.Message;
import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for sending.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class SendTests {

	private final Engine engine;

	SendTests(TestDatabase database) {
		this.engine = new Engine(database);
	}

	@Test
	void eventIdsCountUp() {
		String queue = this.engine.queue();
		assertThat(id("select pgque.send(?, 'a')", queue)).isEqualTo(1);
		assertThat(id("select pgque.send(?, 'a', 'b')", queue)).isEqualTo(2);
		assertThat(id("select pgque.send(?, '{}'::jsonb)", queue)).isEqualTo(3);
		assertThat(id("select pgque.send(?, 'a', '{}'::jsonb)", queue)).isEqualTo(4);
		assertThat(id("select pgque.insert_event(?, 'a', 'b')", queue)).isEqualTo(5);
		assertThat(id("select pgque.insert_event(?, 'a', 'b', 'c', 'd', 'e', 'f')", queue)).isEqualTo(6);
	}

	@Test
	void typeIsDefaultUnlessGiven() {
		String queue = this.engine.queue("c");
		id("select pgque.send(?, 'x')", queue);
		id("select pgque.send(?, '{}'::jsonb)", queue);
		id("select pgque.send(?, 'order placed', 'x')", queue);
		this.engine.values(Long.class, "select unnest(pgque.send_batch(?, array['x']))", queue);
		this.engine.values(Long.class, "select unnest(pgque.send_batch(?, 'order paid', array['x']))", queue);
		assertThat(deliver(queue)).extracting(Message::type)
			.containsExactly("default", "default", "order placed", "default", "order paid");
	}

	@Test
	void textIsKeptAndJsonIsCanonical() {
		String queue = this.engine.queue("c");
		String json = "{\"b\":1,  \"a\" : [1.0, \"ü\"]}";
		id("select pgque.send(?, ?::text)", queue, json);
		id("select pgque.send(?, ?::jsonb)", queue, json);
		id("select pgque.send(?, '{\"b\": 1,\"a\": 2}')", queue);
		id("select pgque.send(?, 't', '{\"b\": 1,\"a\": 2}')", queue);
		id("select pgque.send(?, ?::text)", queue, "");
		assertThat(deliver(queue)).extracting(Message::payload)
			.containsExactly(json, "{\"a\": [1.0, \"ü\"], \"b\": 1}", "{\"b\": 1,\"a\": 2}", "{\"b\": 1,\"a\": 2}", "");
	}

	@Test
	void nullsAreEvents() {
		String queue = this.engine.queue("c");
		id("select pgque.send(?, null::text)", queue);
		id("select pgque.send(?, null::jsonb)", queue);
		id("select pgque.send(?, null, null::text)", queue);
		id("select pgque.insert_event(?, null, null)", queue);
		assertThat(deliver(queue)).extracting(Message::type, Message::payload)
			.containsExactly(tuple("default", null), tuple("default", null), tuple(null, null), tuple(null, null));
	}

	@Test
	void argumentsHaveNames() {
		String queue = this.engine.queue();
		assertThat(id("select pgque.send(queue_name => ?, payload => 'x')", queue)).isEqualTo(1);
		assertThat(id("select pgque.send(payload => 'x', type_name => 't', queue_name => ?)", queue)).isEqualTo(2);
		assertThat(id("select pgque.insert_event(queue_name => ?, ev_type => 't', ev_data => 'x')", queue))
			.isEqualTo(3);
		assertThat(this.engine.values(Long.class,
				"select unnest(pgque.send_batch(queue_name => ?, type_name => 't', payloads => array['x', 'y']))",
				queue))
			.containsExactly(4L, 5L);
	}

	@Test
	void extraColumnsAreKept() {
		String queue = this.engine.queue("c");
		id("select pgque.insert_event(?, 't', 'x', 'key', 'idem', null, 'headers')", queue);
		id("select pgque.send(?, 'x')", queue);
		assertThat(deliver(queue)).extracting(Message::extra1, Message::extra2, Message::extra3, Message::extra4)
			.containsExactly(tuple("key", "idem", null, "headers"), tuple(null, null, null, null));
	}

	@Test
	void timeOfTheEventIsThatOfTheTransaction() {
		String queue = this.engine.queue("c");
		this.engine.inTransaction(() -> {
			id("select pgque.send(?, 'x')", queue);
			assertThat(this.engine.value(Boolean.class,
					"select ev_time = now() and ev_txid = pg_current_xact_id() from pgque.event_"
							+ this.engine.idOf(queue)))
				.isTrue();
		});
		assertThat(deliver(queue)).singleElement()
			.satisfies((message) -> assertThat(message.createdAt()).isNotNull())
			.satisfies((message) -> assertThat(message.retryCount()).isNull());
	}

	@ParameterizedTest
	@ValueSource(strings = { "pgque.send(?, 'x')", "pgque.send(?, '1'::jsonb)", "pgque.send(?, 't', 'x')",
			"pgque.send(?, 't', '1'::jsonb)", "pgque.send_batch(?, array['x'])",
			"pgque.send_batch(?, array['1'::jsonb])", "pgque.send_batch(?, 't', array['x'])",
			"pgque.send_batch(?, 't', array['1'::jsonb])", "pgque.insert_event(?, 't', 'x')",
			"pgque.insert_event(?, 't', 'x', null, null, null, null)",
			"pgque.insert_event_raw(?, null, null, null, null, 't', 'x', null, null, null, null)",
			"pgque.insert_event_bulk(?, 't', array['x'])" })
	void queueMustExistAndTakeEvents(String call) {
		assertThat(this.engine.error("select " + call, "nowhere"))
			.isEqualTo(SqlError.raised("queue not found: nowhere"));
		assertThat(this.engine.error("select " + call, (String) null))
			.isEqualTo(SqlError.raised("queue not found: <NULL>"));
		String queue = this.engine.queue("c");
		this.engine.update("update pgque.queue set queue_disable_insert = true where queue_name = ?", queue);
		assertThat(this.engine.error("select " + call, queue))
			.isEqualTo(SqlError.raised("Insert into queue disallowed"));
		assertThat(deliver(queue)).isEmpty();
	}

	@Test
	void replicationWritesToADisabledQueue() {
		String queue = this.engine.queue("c");
		this.engine.update("update pgque.queue set queue_disable_insert = true where queue_name = ?", queue);
		this.engine.inTransaction(() -> {
			this.engine.execute("set local session_replication_role = replica");
			assertThat(this.engine.send(queue, "x")).isEqualTo(1);
			assertThat(this.engine.send(queue, 2)).containsExactly(2L, 3L);
			assertThat(currentTable(queue)).endsWith("_0");
		});
		assertThat(deliver(queue)).hasSize(3);
	}

	@Test
	void batchKeepsTheOrderOfItsPayloads() {
		String queue = this.engine.queue("c");
		List<Long> ids = this.engine.values(Long.class,
				"select unnest(pgque.send_batch(?, 't', array['z', null, 'a', 'z']))", queue);
		assertThat(ids).containsExactly(1L, 2L, 3L, 4L);
		assertThat(deliver(queue)).extracting(Message::id, Message::payload)
			.containsExactly(tuple(1L, "z"), tuple(2L, null), tuple(3L, "a"), tuple(4L, "z"));
	}

	@Test
	void largeBatchHasAscendingIdsAndOneTime() {
		String queue = this.engine.queue("c");
		List<Long> ids = this.engine.send(queue, 5_000);
		assertThat(ids).hasSize(5_000).isSorted().doesNotHaveDuplicates();
		List<Message> messages = deliver(queue);
		assertThat(messages).extracting(Message::id).isEqualTo(ids);
		assertThat(messages).extracting(Message::payload).isEqualTo(Engine.payloads(1, 5_000));
		assertThat(messages).extracting(Message::createdAt).containsOnly(messages.get(0).createdAt());
		assertThat(messages).extracting(Message::extra1, Message::extra4).containsOnly(tuple(null, null));
	}

	@Test
	void jsonBatchIsCanonical() {
		String queue = this.engine.queue("c");
		this.engine.values(Long.class,
				"select unnest(pgque.send_batch(?, array['{\"b\":1,\"a\":2}', null, '\"x\"']::jsonb[]))", queue);
		assertThat(deliver(queue)).extracting(Message::payload).containsExactly("{\"a\": 2, \"b\": 1}", null, "\"x\"");
	}

	@Test
	void arrayOfSeveralDimensionsIsTakenFlat() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.values(Long.class,
				"select unnest(pgque.send_batch(?, 't', array[['a', 'b'], ['c', 'd']]))", queue))
			.containsExactly(1L, 2L, 3L, 4L);
		assertThat(deliver(queue)).extracting(Message::payload).containsExactly("a", "b", "c", "d");
	}

	@Test
	void emptyBatchAsksForNoQueue() {
		assertThat(this.engine.value(String.class, "select pgque.send_batch('nowhere', '{}'::text[])::text"))
			.isEqualTo("{}");
		assertThat(this.engine.value(String.class, "select pgque.send_batch('nowhere', 't', '{}'::jsonb[])::text"))
			.isEqualTo("{}");
	}

	@ParameterizedTest
	@ValueSource(strings = { "pgque.send_batch(?, null::text[])", "pgque.send_batch(?, null::jsonb[])",
			"pgque.send_batch(?, 't', null::text[])", "pgque.send_batch(?, 't', null::jsonb[])" })
	void batchNeedsAnArray(String call) {
		assertThat(this.engine.error("select " + call, this.engine.queue()))
			.isEqualTo(SqlError.raised("payloads must not be null"));
	}

	@Test
	void failedBatchSendsNothing() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.error("select pgque.send_batch(?, 't', array['1', '{']::jsonb[])", queue).state())
			.isEqualTo("22P02");
		assertThat(this.engine.error("select pgque.send(?, '{'::jsonb)", queue).state()).isEqualTo("22P02");
		assertThat(deliver(queue)).isEmpty();
	}

	@Test
	void untypedArrayInTheThreeArgumentBatchNeedsACast() {
		assertThat(this.engine.error("select pgque.send_batch(?, 't', '{x}')", this.engine.queue()).state())
			.isEqualTo("42725");
	}

	@Test
	void readOnlyTransactionCannotSend() {
		String queue = this.engine.queue();
		this.engine.inTransaction(() -> {
			this.engine.execute("set transaction read only");
			assertThat(this.engine.error("select pgque.send(?, 'x')", queue).state()).isEqualTo("25006");
		});
	}

	@Test
	void rolledBackSendLeavesAGap() {
		String queue = this.engine.queue("c");
		this.engine.rolledBack(() -> this.engine.send(queue, "lost"));
		assertThat(this.engine.send(queue, "kept")).isEqualTo(2);
		assertThat(deliver(queue)).extracting(Message::payload).containsExactly("kept");
	}

	@Test
	void rawEventKeepsWhatItIsGiven() {
		String queue = this.engine.queue("c");
		assertThat(id(
				"select pgque.insert_event_raw(?, 77, '2001-02-03 04:05:06+00', null, 3, 't', 'x', 'a', 'b', 'c', 'd')",
				queue))
			.isEqualTo(77);
		assertThat(
				id("select pgque.insert_event_raw(?, null, null, null, null, 't', 'x', null, null, null, null)", queue))
			.as("the first call consumed a value")
			.isEqualTo(2);
		List<Message> messages = deliver(queue);
		assertThat(messages).extracting(Message::id).containsExactly(2L, 77L);
		assertThat(messages.get(1)).satisfies((message) -> {
			assertThat(message.createdAt()).isEqualTo("2001-02-03T04:05:06Z");
			assertThat(message.retryCount()).isEqualTo(3);
			assertThat(message.extra1() + message.extra2() + message.extra3() + message.extra4()).isEqualTo("abcd");
		});
	}

	@Test
	void rawEventWithAnOwnerIsForThatSubscription() {
		String queue = this.engine.queue("c", "other");
		id("select pgque.insert_event_raw(?, null, null, (select s.sub_id from pgque.subscription s"
				+ " join pgque.consumer on co_id = sub_consumer where sub_queue = ? and co_name = 'other'),"
				+ " 1, 't', 'x', null, null, null, null)", queue, this.engine.idOf(queue));
		this.engine.tick(queue);
		assertThat(this.engine.receive(queue, "c")).isEmpty();
		assertThat(this.engine.receive(queue, "other")).hasSize(1);
	}

	@Test
	void bulkInsertReturnsIds() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.values(Long.class, "select unnest(pgque.insert_event_bulk(?, 't', array['x', null]))",
				queue))
			.containsExactly(1L, 2L);
		assertThat(deliver(queue)).extracting(Message::payload).containsExactly("x", null);
	}

	@Test
	void currentTableTakesRowsDirectly() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "first");
		String table = currentTable(queue);
		assertThat(table).isEqualTo("pgque.event_" + this.engine.idOf(queue) + "_0");
		this.engine.update("insert into " + table + " (ev_type, ev_data) values ('t', 'second')");
		assertThat(deliver(queue)).extracting(Message::id, Message::payload)
			.containsExactly(tuple(1L, "first"), tuple(2L, "second"));
	}

	@Test
	void currentTableOfUnknownOrDisabledQueue() {
		assertThat(this.engine.error("select pgque.current_event_table('nowhere')").message())
			.contains("Event queue not found");
		String queue = this.engine.queue();
		this.engine.update("update pgque.queue set queue_disable_insert = true where queue_name = ?", queue);
		assertThat(this.engine.error("select pgque.current_event_table(?)", queue).message())
			.contains("Writing to queue disabled");
	}

	@Test
	void sendsDoNotDependOnTheTicker() {
		String paused = this.engine.queue();
		this.engine.configure(paused, "ticker_paused", "true");
		assertThat(this.engine.send(paused, "x")).isEqualTo(1);
		String external = this.engine.queue();
		this.engine.configure(external, "external_ticker", "true");
		assertThat(this.engine.send(external, "x")).isEqualTo(1);
	}

	private Long id(String sql, Object... arguments) {
		return this.engine.value(Long.class, sql, arguments);
	}

	private String currentTable(String queue) {
		return this.engine.value(String.class, "select pgque.current_event_table(?)", queue);
	}

	private List<Message> deliver(String queue) {
		this.engine.tick(queue);
		return this.engine.receive(queue, "c");
	}

}
