package io.pgque.engine;

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
 * Tests for the tables that clients and operators read, and here and there write.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class CatalogTests {

	private static final String EVENT = "ev_id bigint, ev_time timestamp with time zone, ev_txid xid8, ev_owner integer,"
			+ " ev_retry integer, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text";

	private final Engine engine;

	CatalogTests(TestDatabase database) {
		this.engine = new Engine(database);
	}

	@ParameterizedTest
	@CsvSource(delimiter = ';', value = {
			"queue; queue_id integer, queue_name text, queue_ntables integer, queue_cur_table integer,"
					+ " queue_rotation_period interval, queue_switch_step1 bigint, queue_switch_step2 bigint,"
					+ " queue_switch_time timestamp with time zone, queue_external_ticker boolean,"
					+ " queue_disable_insert boolean, queue_ticker_paused boolean, queue_ticker_max_count integer,"
					+ " queue_ticker_max_lag interval, queue_ticker_idle_period interval, queue_data_pfx text,"
					+ " queue_event_seq text, queue_tick_seq text, queue_extra_maint text[], queue_max_retries integer",
			"consumer; co_id integer, co_name text",
			"tick; tick_queue integer, tick_id bigint, tick_time timestamp with time zone, tick_snapshot pg_snapshot,"
					+ " tick_event_seq bigint",
			"retry_queue; ev_retry_after timestamp with time zone, ev_queue integer, ev_id bigint,"
					+ " ev_time timestamp with time zone, ev_txid xid8, ev_owner integer, ev_retry integer, ev_type text,"
					+ " ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text",
			"dead_letter; dl_id bigint, dl_queue_id integer, dl_consumer_id integer, dl_time timestamp with time zone,"
					+ " dl_reason text, ev_id bigint, ev_time timestamp with time zone, ev_txid xid8, ev_retry integer,"
					+ " ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text",
			"event_template; " + EVENT,
			"config; singleton boolean, ticker_job_id bigint, maint_job_id bigint, scheduler text, tick_period_ms integer,"
					+ " installed_at timestamp with time zone" })
	void columnsHaveTheirTypesAndOrder(String table, String columns) {
		assertThat(this.engine.value(String.class, """
				select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
				from pg_catalog.pg_attribute
				where attrelid = ('pgque.' || ?)::regclass and attnum > 0 and not attisdropped
				""", table)).startsWith(columns);
	}

	@Test
	void eventTablesHaveTheColumnsOfTheTemplate() {
		String table = "pgque.event_" + this.engine.idOf(this.engine.queue());
		for (String each : new String[] { table, table + "_0", table + "_1", table + "_2" }) {
			assertThat(this.engine.value(String.class, """
					select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
					from pg_catalog.pg_attribute where attrelid = ?::regclass and attnum > 0 and not attisdropped
					""", each)).startsWith(EVENT);
		}
	}

	@ParameterizedTest
	@ValueSource(strings = { "queue_name_uq", "consumer_name_uq", "rq_pkey" })
	void constraintsHaveTheirNames(String name) {
		assertThat(this.engine.values(String.class, "select contype::text from pg_catalog.pg_constraint"
				+ " where connamespace = 'pgque'::regnamespace and conname = ?", name))
			.hasSize(1);
	}

	@ParameterizedTest
	@ValueSource(strings = { "batch_id_seq", "queue_queue_id_seq", "consumer_co_id_seq", "subscription_sub_id_seq" })
	void sequencesHaveTheirNames(String name) {
		assertThat(this.engine.value(Long.class, "select last_value from pgque." + name)).isPositive();
	}

	@Test
	void ticksMayBeMadeByHand() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 3);
		this.engine.update("""
				insert into pgque.tick (tick_queue, tick_id, tick_time, tick_event_seq)
				select ?, 1000 + n, now() - interval '1 hour' + n * interval '1 minute', n from generate_series(1, 3) n
				""", this.engine.idOf(queue));
		assertThat(this.engine.value(Long.class, "select last_tick_id from pgque.get_queue_info(?)", queue))
			.isEqualTo(1003);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::id).containsExactly(1L, 2L, 3L);
		assertThat(this.engine.position(queue, "c")).isEqualTo(1003);
	}

	@Test
	void configHasOneRowWithDefaults() {
		assertThat(this.engine.row("select singleton, ticker_job_id, maint_job_id, scheduler, tick_period_ms,"
				+ " installed_at <= now() from pgque.config"))
			.isEqualTo(tuple(true, null, null, null, 100, true));
		assertThat(this.engine.error("insert into pgque.config (singleton) values (true) returning 1").state())
			.isEqualTo("23505");
		assertThat(this.engine.error("insert into pgque.config (singleton) values (false) returning 1").state())
			.isEqualTo("23514");
		assertThat(this.engine.error("update pgque.config set tick_period_ms = 300 returning 1").state())
			.isEqualTo("23514");
		assertThat(this.engine.error("update pgque.config set scheduler = 'cron' returning 1").state())
			.isEqualTo("23514");
	}

	@Test
	void settingsMayBeUpdatedInTheTable() {
		String queue = this.engine.queue("c");
		this.engine.update("update pgque.queue set queue_max_retries = 0 where queue_name = ?", queue);
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		this.engine.nack(this.engine.nextBatch(queue, "c"), 1, "0", null);
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).hasSize(1);
	}

	@Test
	void retriesMayBeWrittenAndRemovedInTheTable() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		this.engine.update("""
				insert into pgque.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_owner, ev_type, ev_data)
				select now(), sub_queue, n, now(), sub_id, 't', 'x' from pgque.subscription, generate_series(1, 2) n
				where sub_queue = ?
				""", id);
		this.engine.update("delete from pgque.retry_queue where ev_queue = ? and ev_id = 2", id);
		this.engine.redeliver(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::id, Message::payload, Message::retryCount)
			.containsExactly(tuple(1L, "x", null));
	}

	@Test
	void oneEventIsOnceAmongAConsumersDeadLettersAndRetries() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		String letter = "insert into pgque.dead_letter (dl_queue_id, dl_consumer_id, ev_id, ev_time)"
				+ " select sub_queue, sub_consumer, 1, now() from pgque.subscription where sub_queue = ? returning dl_time <= now()";
		assertThat(this.engine.row(letter, id)).isEqualTo(tuple(true));
		assertThat(this.engine.error(letter, id).state()).isEqualTo("23505");
		String retry = "insert into pgque.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_owner)"
				+ " select now(), sub_queue, 1, now(), sub_id from pgque.subscription where sub_queue = ? returning ev_id";
		assertThat(this.engine.row(retry, id)).isEqualTo(tuple(1L));
		assertThat(this.engine.error(retry, id).state()).isEqualTo("23505");
		this.engine.value(Integer.class, "select pgque.drop_queue(?, true)", queue);
	}

}
