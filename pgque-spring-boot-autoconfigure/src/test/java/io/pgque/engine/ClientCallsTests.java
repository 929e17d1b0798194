package io.pgque.engine;

import java.sql.Array;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.ClientSession.Protocol;
import io.pgque.engine.ClientSession.Result;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * The calls of the public clients for Python, TypeScript, Go and Ruby, as they are on the
 * wire, and the results they rely on: types, names and order.
 */
@PgqueDatabase
@ParameterizedClass
@EnumSource(Protocol.class)
class ClientCallsTests {

	private static final String RECEIVE = "select * from pgque.receive(?, ?, ?)";

	private static final String[] MESSAGE_COLUMNS = { "msg_id", "batch_id", "type", "payload", "retry_count",
			"created_at", "extra1", "extra2", "extra3", "extra4" };

	private static final String[] MESSAGE_TYPES = { "int8", "int8", "text", "text", "int4", "timestamptz", "text",
			"text", "text", "text" };

	private static final String NACK = "select pgque.nack(?, row(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)::pgque.message,"
			+ " ?::interval, ?)";

	private final SqlCalls calls;

	private final ClientSession session;

	private final String queue;

	ClientCallsTests(Protocol protocol, TestDatabase database) throws SQLException {
		this.calls = new SqlCalls(database);
		this.session = new ClientSession(database, protocol);
		this.queue = this.calls.queue();
	}

	@BeforeEach
	void subscribe() throws SQLException {
		assertThat(this.session.query("select pgque.subscribe(?, ?)", this.queue, "c").number()).isEqualTo(1);
	}

	@AfterEach
	void close() throws SQLException {
		this.session.close();
	}

	@Test
	void sendReturnsAnInt8() throws SQLException {
		Result untyped = this.session.query("select pgque.send(?, ?::jsonb)", this.queue, "{\"b\": 1, \"a\":2}");
		assertThat(untyped.names()).containsExactly("send");
		assertThat(untyped.id()).isEqualTo(1);
		assertThat(this.session.query("select pgque.send(?, ?, ?::jsonb)", this.queue, "type", "{}").id()).isEqualTo(2);
		this.calls.tick(this.queue);
		Result received = receive(100);
		assertThat(received.at(0, "type")).isEqualTo("default");
		assertThat(received.at(0, "payload")).as("canonical").isEqualTo("{\"a\": 2, \"b\": 1}");
		assertThat(received.at(1, "type")).isEqualTo("type");
	}

	@Test
	void anUntypedPayloadIsText() throws SQLException {
		this.session.query("select pgque.send('" + this.queue + "', '{\"b\": 1,  \"a\":2}')").id();
		this.session.query("select pgque.send('" + this.queue + "', 'type', '{\"b\": 1,  \"a\":2}')").id();
		this.calls.tick(this.queue);
		Result received = receive(100);
		assertThat(received.at(0, "payload")).isEqualTo("{\"b\": 1,  \"a\":2}");
		assertThat(received.at(1, "payload")).isEqualTo("{\"b\": 1,  \"a\":2}");
	}

	@Test
	void sendBatchReturnsAnArrayOfInt8() throws SQLException {
		assertThat(ids(this.session.query("select pgque.send_batch(?, ?, ?::jsonb[])", this.queue, "type",
				"{\"{\\\"n\\\": 1}\",\"2\",null}")))
			.containsExactly(1L, 2L, 3L);
		assertThat(ids(this.session.query("select pgque.send_batch(?, ?, ?::jsonb[])", this.queue, "type", "{}")))
			.isEmpty();
		Result unnested = this.session.query("select unnest(pgque.send_batch(?, ?, ?::jsonb[]))", this.queue, "type",
				"{1,2}");
		assertThat(unnested.types()).containsExactly("int8");
		assertThat(unnested.rows()).containsExactly(List.of(4L), List.of(5L));
		this.calls.tick(this.queue);
		assertThat(receive(100).rows()).extracting((row) -> row.get(3))
			.containsExactly("{\"n\": 1}", "2", null, "1", "2");
	}

	private static List<Long> ids(Result result) throws SQLException {
		assertThat(result.types()).containsExactly("_int8");
		return (result.rows().get(0).get(0) instanceof Array array) ? Arrays.asList((Long[]) array.getArray())
				: List.of();
	}

	@Test
	void subscribeAndUnsubscribeReturnAnInt4() throws SQLException {
		assertThat(this.session.query("select pgque.subscribe(?, ?) as subscribed", this.queue, "d").number())
			.isEqualTo(1);
		assertThat(this.session.query("select pgque.subscribe(?, ?) as subscribed", this.queue, "d").number()).isZero();
		assertThat(this.session.query("select pgque.unsubscribe(?, ?) as removed", this.queue, "d").number())
			.isEqualTo(1);
		assertThat(this.session.query("select pgque.unsubscribe(?, ?) as removed", this.queue, "d").number()).isZero();
		assertThat(this.session.query("select pgque.register_consumer(?, ?)", this.queue, "d").number()).isEqualTo(1);
		assertThat(this.session.query("select pgque.unregister_consumer(?, ?)", this.queue, "d").number()).isEqualTo(1);
	}

	@Test
	void receiveReturnsMessages() throws SQLException {
		this.session.query("select pgque.insert_event(?, ?, ?, ?, ?, ?, ?)", this.queue, "type", "data", "e1", "e2",
				"e3", "e4");
		this.session.query("select pgque.insert_event(?, null, null)", this.queue);
		this.calls.tick(this.queue);
		for (Object limit : new Object[] { (short) 2, 2, Integer.MAX_VALUE, "2147483647", "100", null }) {
			Result result = receive(limit);
			assertThat(result.names()).containsExactly(MESSAGE_COLUMNS);
			assertThat(result.types()).containsExactly(MESSAGE_TYPES);
			assertThat(result.rows()).hasSize(2);
			assertThat(result.rows().get(0)).element(0).isEqualTo(1L);
			assertThat(result.rows().get(0).get(1)).isInstanceOf(Long.class);
			assertThat(result.rows().get(0).subList(2, 5)).containsExactly("type", "data", null);
			assertThat(result.rows().get(0).get(5)).isInstanceOf(Timestamp.class);
			assertThat(result.rows().get(0).subList(6, 10)).containsExactly("e1", "e2", "e3", "e4");
			assertThat(result.rows().get(1).subList(2, 5)).as("null type and payload").containsOnlyNulls();
		}
	}

	@ParameterizedTest
	@ValueSource(strings = { "int8", "text" })
	void ackTakesABatchIdAndReturnsAnInt4(String type) throws SQLException {
		this.calls.sendTicks(this.queue, "1");
		Object batch = receive(100).at(0, "batch_id");
		Object argument = type.equals("text") ? String.valueOf(batch) : batch;
		assertThat(this.session.query("select pgque.ack(?)", argument).number()).isEqualTo(1);
		assertThat(this.session.query("select pgque.ack(?)", argument).number()).isZero();
		assertThat(this.session.query("select pgque.ack(?)", (short) 32000).number()).as("never there").isZero();
	}

	@Test
	void nackTakesTheWholeMessageBack() throws SQLException {
		this.calls.sendTicks(this.queue, "{\"n\": 1}");
		List<@Nullable Object> message = receive(100).rows().get(0);
		assertThat(this.session.query(NACK, nackArguments(message, "60.0 seconds", "why")).number()).isEqualTo(1);
		String jsonInside = NACK.replaceFirst("row\\(\\?, \\?, \\?, \\?", "row(?, ?, ?, ?::jsonb");
		assertThat(this.session.query(jsonInside, nackArguments(message, "60", null)).number()).as("repeated")
			.isEqualTo(1);
		this.session.query("select pgque.ack(?)", message.get(1));
		this.calls.redeliver(this.queue);
		assertThat(receive(100).rows().get(0)).as("comes again, counted").element(4).isEqualTo(1);
	}

	private static @Nullable Object[] nackArguments(List<@Nullable Object> message, String delay,
			@Nullable String reason) {
		List<@Nullable Object> arguments = new ArrayList<>();
		arguments.add(message.get(1));
		message
			.forEach((value) -> arguments.add((value == null || value instanceof Number) ? value : value.toString()));
		arguments.add(delay);
		arguments.add(reason);
		return arguments.toArray();
	}

	@Test
	void tickersReturnAnInt8OrNull() throws SQLException {
		this.session.query("select pgque.send(?, ?::jsonb)", this.queue, "1");
		assertThat(this.session.query("select pgque.ticker(?)", this.queue).id()).as("after the first event at once")
			.isEqualTo(2);
		assertThat(this.session.query("select pgque.ticker(?)", this.queue).value("int8")).isNull();
		assertThat(this.session.query("select pgque.force_next_tick(?)", this.queue).id()).isEqualTo(2);
		assertThat(this.session.query("select pgque.ticker(?)", this.queue).id()).isEqualTo(3);
		assertThat(this.session.query("select pgque.ticker(?)", this.queue).value("int8")).as("forced once").isNull();
		this.session.query("select pgque.force_next_tick(?)", this.queue);
		assertThat(this.session.query("select pgque.ticker()").id()).isPositive();
	}

	@Test
	void cooperativeCallsReturnTheSame() throws SQLException {
		assertThat(this.session.query("select pgque.subscribe_subconsumer(?, ?, ?)", this.queue, "g", "a").number())
			.isEqualTo(1);
		assertThat(this.session.query("select pgque.touch_subconsumer(?, ?, ?)", this.queue, "g", "a").number())
			.isEqualTo(1);
		this.calls.sendTicks(this.queue, "1");
		for (Object dead : new Object[] { null, "30 seconds", "30.5" }) {
			Result result = this.session.query("select * from pgque.receive_coop(?, ?, ?, ?, ?::interval)", this.queue,
					"g", "a", Integer.MAX_VALUE, dead);
			assertThat(result.names()).containsExactly(MESSAGE_COLUMNS);
			assertThat(result.types()).containsExactly(MESSAGE_TYPES);
			assertThat(result.rows()).hasSize(1);
		}
		assertThat(
				this.session.query("select pgque.unsubscribe_subconsumer(?, ?, ?, ?)", this.queue, "g", "a", (short) 1)
					.number())
			.isEqualTo(1);
	}

	@Test
	void queuesAreMadeWithUntypedNames() throws SQLException {
		String name = this.queue + "-made";
		assertThat(this.session.query("select pgque.create_queue(?)", name).number()).isEqualTo(1);
		assertThat(this.session.query("select pgque.set_queue_config(?, 'ticker_max_count', '10')", name).number())
			.isEqualTo(1);
		assertThat(this.session.query("select pgque.current_event_table(?)", name).value("text")).asString()
			.matches("pgque\\.event_\\d+_0");
		assertThat(this.session.query("select pgque.drop_queue(?)", name).number()).isEqualTo(1);
		this.session.query("select pgque.create_queue(?)", name);
		assertThat(this.session.query("select pgque.drop_queue(?, true)", name).number()).isEqualTo(1);
	}

	@Test
	void theServerDescribesEveryParameter() throws SQLException {
		record Call(String sql, String... types) {
		}
		for (Call call : List.of(new Call("pgque.send(?, ?::jsonb)", "text", "jsonb"),
				new Call("pgque.send(?, ?, ?::jsonb)", "text", "text", "jsonb"),
				new Call("pgque.send_batch(?, ?, ?::jsonb[])", "text", "text", "_jsonb"),
				new Call("pgque.receive(?, ?, ?)", "text", "text", "int4"), new Call("pgque.ack(?)", "int8"),
				new Call(NACK.substring("select ".length()), "int8", "int8", "int8", "text", "text", "int4",
						"timestamptz", "text", "text", "text", "text", "interval", "text"),
				new Call("pgque.subscribe(?, ?)", "text", "text"), new Call("pgque.unsubscribe(?, ?)", "text", "text"),
				new Call("pgque.ticker(?)", "text"), new Call("pgque.force_next_tick(?)", "text"),
				new Call("pgque.subscribe_subconsumer(?, ?, ?)", "text", "text", "text"),
				new Call("pgque.unsubscribe_subconsumer(?, ?, ?, ?)", "text", "text", "text", "int4"),
				new Call("pgque.receive_coop(?, ?, ?, ?, ?::interval)", "text", "text", "text", "int4", "interval"),
				new Call("pgque.touch_subconsumer(?, ?, ?)", "text", "text", "text"),
				new Call("pgque.create_queue(?)", "text"), new Call("pgque.drop_queue(?)", "text"),
				new Call("pgque.insert_event(?, ?, ?)", "text", "text", "text"))) {
			assertThat(tuple(call.sql(), this.session.parameterTypes("select " + call.sql())))
				.isEqualTo(tuple(call.sql(), List.of(call.types())));
		}
	}

	private Result receive(@Nullable Object limit) throws SQLException {
		return this.session.query(RECEIVE, this.queue, "c", limit);
	}

}
