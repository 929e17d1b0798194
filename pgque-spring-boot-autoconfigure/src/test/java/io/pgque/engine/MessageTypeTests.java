package io.pgque.engine;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.postgresql.PGResultSetMetaData;
import org.postgresql.core.Field;
import org.postgresql.ds.PGSimpleDataSource;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for the row type in which messages are received and given back.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class MessageTypeTests {

	private final TestDatabase database;

	private final Engine engine;

	MessageTypeTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@Test
	void fieldsHaveTheirTypesAndOrder() {
		assertThat(this.engine.value(String.class, """
				select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
				from pg_catalog.pg_type t
				join pg_catalog.pg_attribute a on a.attrelid = t.typrelid
				where t.oid = 'pgque.message'::regtype and not a.attisdropped
				""")).isEqualTo("msg_id bigint, batch_id bigint, type text, payload text, retry_count integer,"
				+ " created_at timestamp with time zone, extra1 text, extra2 text, extra3 text, extra4 text");
	}

	@Test
	void receiveReturnsTheRowType() {
		assertThat(this.engine.value(String.class,
				"select pg_get_function_result(oid) from pg_catalog.pg_proc"
						+ " where oid = 'pgque.receive(text,text,integer)'::regprocedure"))
			.isEqualTo("SETOF pgque.message");
	}

	@Test
	void batchesHaveTheSameColumnsAndOneMore() {
		for (String function : new String[] { "receive_batch(text,text,integer,bigint)",
				"receive_page(bigint,bigint,integer,bigint)",
				"receive_mapped_page(bigint,bigint,pgque.batch_page,bigint)" }) {
			assertThat(this.engine.value(String.class, "select pg_get_function_result(?::regprocedure)",
					"pgque." + function))
				.isEqualTo("TABLE(msg_id bigint, batch_id bigint, type text, payload text, retry_count integer,"
						+ " created_at timestamp with time zone, extra1 text, extra2 text, extra3 text, extra4 text,"
						+ " more boolean)");
		}
	}

	@Test
	void rowOfTenFieldsIsAMessage() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(this.engine.value(Integer.class, """
				select pgque.nack(?, row(1, ?, 'test', 'payload', null, now(), null, null, null, null)::pgque.message,
				                  '10 seconds'::interval, 'reason')
				""", batch, batch)).isEqualTo(1);
		// As a client does that holds its payload as JSON.
		assertThat(this.engine.value(Integer.class, """
				select pgque.nack(?, row(2, ?, 'test', '{"a": 1}'::jsonb, 0, now(), '', '', '', '')::pgque.message,
				                  '10 seconds'::interval, null)
				""", batch, batch)).isEqualTo(1);
		assertThat(this.engine.value(Integer.class,
				"select pgque.nack(?, m) from pgque.receive(?, 'c') m where m.msg_id = 3", batch, queue))
			.isEqualTo(1);
		assertThat(this.engine.rows("select * from pgque.retry_queue where ev_queue = ?", this.engine.idOf(queue)))
			.hasSize(3);
	}

	@Test
	void binaryAndTextProtocolTellTheSame() throws SQLException {
		String queue = this.engine.queue("c");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x ü', 'a', 'b', 'c', 'd')", queue);
		this.engine.value(Long.class, "select pgque.insert_event(?, null, null)", queue);
		this.engine.tick(queue);
		Message[] text = receive(queue, false);
		Message[] binary = receive(queue, true);
		assertThat(binary).isEqualTo(text).hasSize(2);
		assertThat(binary[0])
			.isEqualTo(new Message(1, binary[0].batch(), "t", "x ü", null, binary[0].createdAt(), "a", "b", "c", "d"));
		assertThat(binary[0].createdAt()).isBetween(OffsetDateTime.now().minusMinutes(5),
				OffsetDateTime.now().plusMinutes(5));
		assertThat(binary[1].type()).isNull();
		this.engine.nack(binary[0].batch(), 1, "0", null);
		this.engine.ack(binary[0].batch());
		this.engine.redeliver(queue);
		Message[] again = receive(queue, true);
		assertThat(again).singleElement().satisfies((message) -> assertThat(message.retryCount()).isEqualTo(1));
		assertThat(again).isEqualTo(receive(queue, false));
	}

	@Test
	void resultsAreOfTheIntegerTypesThatClientsExpect() {
		assertThat(this.engine.values(String.class,
				"""
						select distinct p.proname || ' ' || pg_get_function_result(p.oid)
						from pg_catalog.pg_proc p
						where p.pronamespace = 'pgque'::regnamespace
						  and p.proname in ('ack', 'nack', 'subscribe', 'unsubscribe', 'create_queue', 'drop_queue',
						                    'set_queue_config', 'register_consumer', 'unregister_consumer', 'send', 'send_batch',
						                    'ticker', 'force_next_tick', 'maint', 'maint_retry_events', 'next_batch', 'finish_batch')
						order by 1
						"""))
			.containsExactly("ack integer", "create_queue integer", "drop_queue integer", "finish_batch integer",
					"force_next_tick bigint", "maint integer", "maint_retry_events integer", "nack integer",
					"next_batch bigint", "register_consumer integer", "send bigint", "send_batch bigint[]",
					"set_queue_config integer", "subscribe integer", "ticker bigint", "unregister_consumer integer",
					"unsubscribe integer");
	}

	private Message[] receive(String queue, boolean binary) throws SQLException {
		PGSimpleDataSource dataSource = this.database.dataSource().unwrap(PGSimpleDataSource.class);
		dataSource.setPrepareThreshold(binary ? -1 : 0);
		dataSource.setBinaryTransfer(binary);
		try (Connection connection = dataSource.getConnection();
				PreparedStatement statement = connection.prepareStatement("select * from pgque.receive(?, 'c')")) {
			statement.setString(1, queue);
			try (ResultSet rows = statement.executeQuery()) {
				Message[] messages = new Message[0];
				while (rows.next()) {
					messages = java.util.Arrays.copyOf(messages, messages.length + 1);
					messages[messages.length - 1] = Message.of(rows);
				}
				assertThat(rows.getMetaData().unwrap(PGResultSetMetaData.class).getFormat(1))
					.isEqualTo(binary ? Field.BINARY_FORMAT : Field.TEXT_FORMAT);
				return messages;
			}
		}
	}

}
