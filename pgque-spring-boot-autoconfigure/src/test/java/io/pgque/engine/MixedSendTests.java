package io.pgque.engine;

import java.sql.Array;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Sending with a key, and many events of different kinds in one call.
 */
@PgqueDatabase
class MixedSendTests {

	private static final String ROW = "concat_ws('|', coalesce(type, '-'), coalesce(payload, '-'),"
			+ " coalesce(extra1, '-'), coalesce(extra2, '-'), coalesce(extra3, '-'), coalesce(extra4, '-'))";

	private static final AtomicInteger NUMBER = new AtomicInteger();

	TestDatabase database;

	private Engine engine;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.engine = new Engine(this.database.dataSource());
		this.queue = "mixed-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'consumer')", this.queue, this.queue);
	}

	@Test
	void theKeyIsInTheFirstExtraColumn() {
		assertThat(id("select pgque.send(?, 't', '{\"b\":1,  \"a\":2}', 'literal')")).isEqualTo(1);
		assertThat(id("select pgque.send(?, 't', '{\"b\":1,  \"a\":2}'::jsonb, 'json')")).isEqualTo(2);
		assertThat(id("select pgque.send(?, null, null::text, null)")).isEqualTo(3);
		assertThat(id("select pgque.send(i_queue => ?, i_type => 't', i_payload => 'x', i_partition_key => 'named')"))
			.isEqualTo(4);
		assertThat(received()).containsExactly("t|{\"b\":1,  \"a\":2}|literal|-|-|-",
				"t|{\"a\": 2, \"b\": 1}|json|-|-|-", "-|-|-|-|-|-", "t|x|named|-|-|-");
	}

	@Test
	void eachEventHasItsOwnColumns() {
		assertThat(sendEvents("array['a', null, 'c']", "array['1', '2', null]", "array['k1', null, 'k3']",
				"array[null, 'i2', null]", "null", "array['{}', '{\"x\":\"y\"}', null]"))
			.containsExactly(1L, 2L, 3L);
		assertThat(received()).containsExactly("a|1|k1|-|-|{}", "-|2|-|i2|-|{\"x\":\"y\"}", "c|-|k3|-|-|-");
	}

	@Test
	void extraColumnsMayBeLeftOut() {
		assertThat(sendEvents("array['a', 'b']", "array['1', '2']", "null", "null", "null", "null")).containsExactly(1L,
				2L);
		assertThat(received()).containsExactly("a|1|-|-|-|-", "b|2|-|-|-|-");
	}

	@Test
	void idsAscendInTheOrderOfThePayloads() {
		assertThat(this.database.values(Long.class, """
				select unnest(pgque.send_events(?, array_agg('type ' || n order by n), array_agg(n::text order by n),
				                                null, null, array_agg('third ' || n order by n), null))
				from generate_series(1, 5000) n""", this.queue))
			.isEqualTo(LongStream.rangeClosed(1, 5000).boxed().toList());
		this.database.query("select * from pgque.tick_now()");
		assertThat(this.database.value(Long.class, """
				select count(*) from pgque.receive_batch(?, 'consumer', 10000, 1000000)
				where payload = msg_id::text and type = 'type ' || msg_id and extra3 = 'third ' || msg_id""",
				this.queue))
			.isEqualTo(5000);
	}

	@Test
	void severalDimensionsAreTakenFlat() {
		assertThat(sendEvents("array[['a', 'b'], ['c', 'd']]", "array['1', '2', '3', '4']", "null", "null", "null",
				"null"))
			.hasSize(4);
		assertThat(received()).containsExactly("a|1|-|-|-|-", "b|2|-|-|-|-", "c|3|-|-|-|-", "d|4|-|-|-|-");
	}

	@Test
	void nothingIsSentOfNothing() {
		assertThat(sendEvents("'{}'", "'{}'", "null", "'{}'", "null", "null")).isEmpty();
		assertThat(this.database
			.query("select pgque.send_events('nowhere', '{}', '{}', null, null, null, null)::text as ids")).hasSize(1);
	}

	@Test
	void argumentsAreChecked() {
		assertThat(failure("null", "null", "null", "null", "null", "null"))
			.isEqualTo(SqlError.raised("payloads must not be null"));
		assertThat(failure("null", "array['1']", "null", "null", "null", "null"))
			.isEqualTo(SqlError.raised("types must not be null"));
		assertThat(failure("array['a', 'b']", "array['1']", "null", "null", "null", "null")).isEqualTo(SqlError
			.raised("arrays differ in length: types 2, payloads 1, extra1 <NULL>, extra2 <NULL>, extra3 <NULL>,"
					+ " extra4 <NULL>"));
		for (int i = 0; i < 4; i++) {
			List<String> extras = new ArrayList<>(Collections.nCopies(4, "null"));
			extras.set(i, "array['x', 'y']");
			assertThat(failure("array['a']", "array['1']", extras.get(0), extras.get(1), extras.get(2), extras.get(3))
				.message()).contains("arrays differ in length", "extra" + (i + 1) + " 2");
		}
		assertThat(failure("'{}'", "'{}'", "array['x']", "null", "null", "null").message())
			.startsWith("arrays differ in length");
		assertThat(this.engine
			.error("select pgque.send_events('nowhere', array['a'], array['1'], null, null, null, null)"))
			.isEqualTo(SqlError.raised("queue not found: nowhere"));
		assertThat(received()).isEmpty();
	}

	@Test
	void aWriteDisabledQueueTakesNothing() {
		this.database.update("update pgque.queue set queue_disable_insert = true where queue_name = ?", this.queue);
		assertThat(failure("array['a']", "array['1']", "null", "null", "null", "null"))
			.isEqualTo(SqlError.raised("Insert into queue disallowed"));
		assertThat(this.engine.error("select pgque.send(?, 't', 'x', 'key')", this.queue))
			.isEqualTo(SqlError.raised("Insert into queue disallowed"));
	}

	@Test
	void allAreSentOrNone() throws Exception {
		try (Session session = Session.transactional(this.database)) {
			session.column(Array.class,
					"select pgque.send_events(?, array['a', 'b'], array['1', '2'], null, null, null, null)",
					this.queue);
			session.rollback();
			session.column(Array.class,
					"select pgque.send_events(?, array['c', 'd'], array['3', '4'], null, null, null, null)",
					this.queue);
			session.commit();
		}
		assertThat(received()).containsExactly("c|3|-|-|-|-", "d|4|-|-|-|-");
	}

	@Test
	void writersSendAndReadersDoNot() {
		Engine writer = new Engine(this.database.createLogin("pgque_writer").dataSource());
		Engine reader = new Engine(this.database.createLogin("pgque_reader").dataSource());
		for (String call : List.of("select pgque.send(?, 't', 'x', 'key')",
				"select pgque.send(?, 't', '{}'::jsonb, 'key')",
				"select pgque.send_events(?, array['a'], array['1'], null, null, null, null)")) {
			assertThat(writer.rows(call, this.queue)).hasSize(1);
			assertThat(reader.error(call, this.queue).state()).isEqualTo("42501");
		}
	}

	private List<Long> sendEvents(String types, String payloads, String extra1, String extra2, String extra3,
			String extra4) {
		return this.database.values(Long.class,
				"select unnest(" + call(types, payloads, extra1, extra2, extra3, extra4) + ")", this.queue);
	}

	private SqlError failure(String types, String payloads, String extra1, String extra2, String extra3,
			String extra4) {
		return this.engine.error("select " + call(types, payloads, extra1, extra2, extra3, extra4), this.queue);
	}

	private static String call(String... arrays) {
		return "pgque.send_events(?, " + String.join(", ", arrays) + ")";
	}

	private long id(String sql) {
		return this.database.value(Long.class, sql, this.queue);
	}

	private List<String> received() {
		this.database.query("select * from pgque.tick_now()");
		return this.database.values(String.class,
				"select " + ROW + " from pgque.receive_batch(?, 'consumer', 10000, 1000000) order by msg_id",
				this.queue);
	}

}
