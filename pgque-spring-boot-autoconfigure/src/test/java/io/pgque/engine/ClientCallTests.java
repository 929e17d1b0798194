package io.pgque.engine;

import java.sql.SQLException;
import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.postgresql.ds.PGSimpleDataSource;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for calls as the clients of other languages make them: strings travel without a
 * type, so that the server has to find the function by the number of arguments, and
 * integers in the smallest type that holds them.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class ClientCallTests {

	private static final String NACK = "select pgque.nack(?, row(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)::pgque.message, ?::interval, ?)";

	private final Engine client;

	ClientCallTests(TestDatabase database) throws SQLException {
		PGSimpleDataSource dataSource = database.dataSource().unwrap(PGSimpleDataSource.class);
		dataSource.setStringType("unspecified");
		this.client = new Engine(dataSource);
	}

	@Test
	void everyCallFindsItsFunction() {
		assertThat(integer("select pgque.create_queue(?)", "calls")).isEqualTo(1);
		assertThat(integer("select pgque.subscribe(?, ?)", "calls", "c")).isEqualTo(1);
		assertThat(integer("select pgque.register_consumer(?, ?)", "calls", "d")).isEqualTo(1);
		assertThat(integer("select pgque.set_queue_config(?, 'max_retries', '1')", "calls")).isEqualTo(1);
		assertThat(bigint("select pgque.send(?, ?::jsonb)", "calls", "{\"b\":1,\"a\":2}")).isEqualTo(1);
		assertThat(bigint("select pgque.send(?, ?, ?::jsonb)", "calls", "t", "{\"b\":1,\"a\":2}")).isEqualTo(2);
		assertThat(this.client.values(Long.class, "select unnest(pgque.send_batch(?, ?, ?::jsonb[]))", "calls", "t",
				"{\"{\\\"b\\\":1,\\\"a\\\":2}\",null}"))
			.containsExactly(3L, 4L);
		assertThat(bigint("select pgque.insert_event(?, null, null)", "calls")).isEqualTo(5);
		assertThat(this.client.value(String.class, "select pgque.current_event_table(?)", "calls")).isNotNull();
		assertThat(bigint("select pgque.force_next_tick(?)", "calls")).isEqualTo(1);
		assertThat(bigint("select pgque.ticker(?)", "calls")).isEqualTo(2);
		assertThat(bigint("select pgque.ticker()")).isNotNull();
		List<Message> messages = this.client.messages("select * from pgque.receive(?, ?, ?)", "calls", "c",
				(short) 100);
		assertThat(messages).extracting(Message::type, Message::payload)
			.containsExactly(tuple("default", "{\"a\": 2, \"b\": 1}"), tuple("t", "{\"a\": 2, \"b\": 1}"),
					tuple("t", "{\"a\": 2, \"b\": 1}"), tuple("t", null), tuple(null, null));
		String batch = String.valueOf(messages.get(0).batch());
		assertThat(integer(NACK, batch, "1", batch, "t", "{}", null, "2001-02-03T04:05:06Z", null, null, null, null,
				"10", "reason"))
			.isEqualTo(1);
		assertThat(integer(NACK, messages.get(0).batch(), (short) 2, messages.get(0).batch(), "t", "{}", (short) 1,
				"2001-02-03T04:05:06Z", "a", "b", "c", "d", "0.5", null))
			.isEqualTo(1);
		assertThat(integer("select pgque.ack(?)", batch)).isEqualTo(1);
		assertThat(integer("select pgque.ack(?)", (short) 9999)).isZero();
		assertThat(integer("select pgque.unregister_consumer(?, ?)", "calls", "d")).isEqualTo(1);
		assertThat(integer("select pgque.unsubscribe(?, ?)", "calls", "c")).isEqualTo(1);
		assertThat(integer("select pgque.drop_queue(?)", "calls")).isEqualTo(1);
		integer("select pgque.create_queue(?)", "calls");
		integer("select pgque.subscribe(?, ?)", "calls", "c");
		assertThat(integer("select pgque.drop_queue(?, true)", "calls")).isEqualTo(1);
	}

	@Test
	void payloadWithoutATypeIsText() {
		String queue = this.client.queue("c");
		bigint("select pgque.send(?, ?)", queue, "{\"b\":1,\"a\":2}");
		bigint("select pgque.send(?, ?, ?)", queue, "t", "{\"b\":1,\"a\":2}");
		bigint("select pgque.send(?, ?, ?)", queue, "t", "no json");
		this.client.tick(queue);
		assertThat(this.client.receive(queue, "c")).extracting(Message::payload)
			.containsExactly("{\"b\":1,\"a\":2}", "{\"b\":1,\"a\":2}", "no json");
	}

	@Test
	void errorsTellTheirClassByTheirWords() {
		String queue = this.client.queue("c");
		assertThat(this.client.error("select pgque.send(?, ?::jsonb)", "nowhere", "1").message())
			.contains("queue not found");
		String consumer = this.client.error("select * from pgque.receive(?, ?, ?)", queue, "nobody", (short) 1)
			.message();
		assertThat(consumer).contains("Not subscriber to queue").doesNotContainIgnoringCase("queue not found");
		String batch = this.client
			.error(NACK, "987654321", "1", "1", "t", "{}", null, null, null, null, null, null, "10", null)
			.message();
		assertThat(batch).contains("batch not found").doesNotContainIgnoringCase("queue not found");
	}

	private Integer integer(String sql, Object... arguments) {
		return (Integer) this.client.row(sql, arguments).toList().get(0);
	}

	private Long bigint(String sql, Object... arguments) {
		return (Long) this.client.row(sql, arguments).toList().get(0);
	}

}
