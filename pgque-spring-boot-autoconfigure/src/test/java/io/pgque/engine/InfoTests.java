package io.pgque.engine;

import java.util.List;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import io.pgque.schema.PgqueSchema;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for what can be read about queues, consumers and batches.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class InfoTests {

	private final TestDatabase database;

	private final Engine engine;

	InfoTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@ParameterizedTest
	@CsvSource(delimiter = ';', value = {
			"get_queue_info; queue_name text, queue_ntables integer, queue_cur_table integer, queue_rotation_period interval,"
					+ " queue_switch_time timestamp with time zone, queue_external_ticker boolean,"
					+ " queue_ticker_paused boolean, queue_ticker_max_count integer, queue_ticker_max_lag interval,"
					+ " queue_ticker_idle_period interval, ticker_lag interval, ev_per_sec double precision, ev_new bigint,"
					+ " last_tick_id bigint; 2",
			"get_consumer_info; queue_name text, consumer_name text, lag interval, last_seen interval, last_tick bigint,"
					+ " current_batch bigint, next_tick bigint, pending_events bigint; 3",
			"get_batch_info; queue_name text, consumer_name text, batch_start timestamp with time zone,"
					+ " batch_end timestamp with time zone, prev_tick_id bigint, tick_id bigint, lag interval,"
					+ " seq_start bigint, seq_end bigint; 1",
			"status; component text, status text, detail text; 1",
			"dead_letters; dl_id bigint, queue_name text, consumer_name text, dl_time timestamp with time zone,"
					+ " dl_reason text, ev_id bigint, ev_time timestamp with time zone, ev_retry integer, ev_type text,"
					+ " ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text; 1" })
	void columnsHaveTheirTypesAndOrder(String function, String columns, int overloads) {
		assertThat(this.engine.values(String.class, """
				select string_agg(n || ' ' || format_type(t, null), ', ' order by i)
				from pg_catalog.pg_proc p
				cross join unnest(p.proargnames, p.proallargtypes, p.proargmodes) with ordinality a (n, t, m, i)
				where p.pronamespace = 'pgque'::regnamespace and p.proname = ? and m in ('o', 't')
				group by p.oid
				""", function)).hasSize(overloads).containsOnly(columns);
	}

	@Test
	void queueInfo() {
		String queue = this.engine.queue();
		this.engine.configure(queue, "ticker_max_count", "7");
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		this.engine.send(queue, 2);
		assertThat(this.engine.row("""
				select queue_name, queue_ntables, queue_cur_table, queue_rotation_period::text, queue_external_ticker,
				       queue_ticker_paused, queue_ticker_max_count, queue_ticker_max_lag::text,
				       queue_ticker_idle_period::text, ticker_lag between '0' and '1 minute', ev_new, last_tick_id
				from pgque.get_queue_info(?)
				""", queue))
			.isEqualTo(tuple(queue, 3, 0, "02:00:00", false, false, 7, "00:00:03", "00:01:00", true, 2L, 2L));
	}

	@Test
	void eventsPerSecondOfTheLastTwentyTicks() {
		String queue = this.engine.queue();
		assertThat(eventsPerSecond(queue)).as("one tick").isNull();
		int id = this.engine.idOf(queue);
		this.engine.update("update pgque.tick set tick_time = now() - interval '1 hour' where tick_queue = ?", id);
		this.engine.update("""
				insert into pgque.tick (tick_queue, tick_id, tick_time, tick_event_seq)
				select ?, n, now() - (31 - n) * interval '10 seconds', case when n > 10 then n * 50 else 0 end
				from generate_series(2, 30) n
				""", id);
		assertThat(eventsPerSecond(queue)).as("ticks 11 to 30").isEqualTo(5.0);
	}

	@Test
	void lagOfTheTickerIsTheAgeOfTheNewestTick() {
		String queue = this.engine.queue();
		this.engine.age(queue, "90 seconds");
		assertThat(this.engine.value(Boolean.class,
				"select ticker_lag between '90 s' and '120 s' from pgque.get_queue_info(?)", queue))
			.isTrue();
	}

	@Test
	void queueWithoutTicksHasNoFigures() {
		String queue = this.engine.queue();
		this.engine.update("delete from pgque.tick where tick_queue = ?", this.engine.idOf(queue));
		assertThat(this.engine.row("select ticker_lag, ev_per_sec, ev_new, last_tick_id from pgque.get_queue_info(?)",
				queue))
			.isEqualTo(tuple(null, null, null, null));
	}

	@Test
	void queuesComeByName() {
		try (TestDatabase own = TestDatabase.migrated()) {
			Engine other = new Engine(own);
			assertThat(other.rows("select * from pgque.get_queue_info()")).isEmpty();
			for (String name : List.of("b", "a", "c")) {
				other.value(Integer.class, "select pgque.create_queue(?)", name);
			}
			assertThat(other.values(String.class, "select queue_name from pgque.get_queue_info()")).containsExactly("a",
					"b", "c");
			assertThat(other.values(String.class, "select queue_name from pgque.get_queue_info(null)"))
				.containsExactly("a", "b", "c");
			assertThat(other.values(String.class, "select queue_name from pgque.get_queue_info('b')"))
				.containsExactly("b");
			assertThat(other.rows("select queue_name from pgque.get_queue_info('nowhere')")).isEmpty();
		}
	}

	@Test
	void consumerInfo() {
		String queue = this.engine.queue("c");
		this.engine.age(queue, "10 minutes");
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		this.engine.send(queue, 7);
		String info = "select queue_name, consumer_name, lag > '9 minutes', last_seen < '1 minute', last_tick, current_batch,"
				+ " next_tick, pending_events from pgque.get_consumer_info(?)";
		assertThat(this.engine.row(info, queue)).isEqualTo(tuple(queue, "c", true, true, 1L, null, null, 5L));
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(this.engine.row(info, queue)).isEqualTo(tuple(queue, "c", true, true, 1L, batch, 2L, 5L));
		this.engine.ack(batch);
		assertThat(this.engine.row(info, queue)).isEqualTo(tuple(queue, "c", false, true, 2L, null, null, 2L));
	}

	@Test
	void consumersComeByQueueAndName() {
		try (TestDatabase own = TestDatabase.migrated()) {
			Engine other = new Engine(own);
			for (String name : List.of("q2", "q1")) {
				other.value(Integer.class, "select pgque.create_queue(?)", name);
				other.subscribe(name, "d");
				other.subscribe(name, "c");
			}
			List<Tuple> all = List.of(tuple("q1", "c"), tuple("q1", "d"), tuple("q2", "c"), tuple("q2", "d"));
			String columns = "select queue_name, consumer_name from pgque.get_consumer_info";
			assertThat(other.rows(columns + "()")).isEqualTo(all);
			assertThat(other.rows(columns + "(null)")).isEqualTo(all);
			assertThat(other.rows(columns + "(null, null)")).isEqualTo(all);
			assertThat(other.rows(columns + "('q2')")).isEqualTo(all.subList(2, 4));
			assertThat(other.rows(columns + "('q2', 'd')")).isEqualTo(all.subList(3, 4));
			assertThat(other.rows(columns + "(null, 'c')")).containsExactly(all.get(0), all.get(2));
			assertThat(other.rows(columns + "('nowhere')")).isEmpty();
			assertThat(other.rows(columns + "('q1', 'nobody')")).isEmpty();
		}
	}

	@Test
	void batchInfo() {
		String queue = this.engine.queue("c");
		this.engine.age(queue, "10 minutes");
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(this.engine.row("""
				select queue_name, consumer_name, batch_end - batch_start > '9 minutes', prev_tick_id, tick_id,
				       lag between '0' and '1 minute', seq_start, seq_end
				from pgque.get_batch_info(?)
				""", batch)).isEqualTo(tuple(queue, "c", true, 1L, 2L, true, 0L, 3L));
		this.engine.ack(batch);
		assertThat(this.engine.row("select * from pgque.get_batch_info(?)", batch))
			.isEqualTo(tuple(null, null, null, null, null, null, null, null, null));
		assertThat(this.engine.row("select * from pgque.get_batch_info(null)"))
			.isEqualTo(tuple(null, null, null, null, null, null, null, null, null));
	}

	@Test
	void versionIsOurs() {
		assertThat(this.engine.value(String.class, "select pgque.version()")).isEqualTo(PgqueSchema.RELEASE);
		assertThat(this.engine.value(String.class, "select pgque.distribution()")).isEqualTo("pgque-spring");
	}

	@Test
	void statusHasALineForEachComponent() {
		try (TestDatabase own = TestDatabase.migrated()) {
			Engine other = new Engine(own);
			other.queue("c1", "c2");
			other.queue();
			List<Tuple> rows = other.rows("select component, status, detail from pgque.status()");
			assertThat(rows).extracting((row) -> row.toList().get(0) + " " + row.toList().get(1))
				.containsExactly("postgresql info", "pgque info", "scheduler manual", "ticker stopped",
						"maintenance stopped", "pg_cron unavailable", "pg_timetable unavailable", "queues info",
						"consumers info");
			assertThat(detail(rows, 0)).startsWith("PostgreSQL " + this.database.server().majorVersion());
			assertThat(detail(rows, 1)).isEqualTo(other.value(String.class, "select pgque.version()"));
			assertThat(detail(rows, 2)).contains("100 ms");
			assertThat(detail(rows, 5)).containsSubsequence("pgque.ticker()", "pgque.maint()");
			assertThat(detail(rows, 7)).isEqualTo("2 queues configured");
			assertThat(detail(rows, 8)).isEqualTo("2 active subscriptions");
		}
	}

	@Test
	void statusTellsOfAScheduler() {
		try (TestDatabase own = TestDatabase.migrated()) {
			Engine other = new Engine(own);
			other.execute("create schema timetable");
			other.update("update pgque.config set scheduler = 'pg_timetable', ticker_job_id = 11, maint_job_id = 12");
			List<Tuple> rows = other.rows("select component, status, detail from pgque.status()");
			assertThat(rows).extracting((row) -> row.toList().get(0) + " " + row.toList().get(1))
				.containsExactly("postgresql info", "pgque info", "scheduler pg_timetable", "ticker scheduled",
						"maintenance scheduled", "pg_cron unavailable", "queues info", "consumers info");
			assertThat(detail(rows, 2)).contains("11", "12", "100 ms");
		}
	}

	private Double eventsPerSecond(String queue) {
		return this.engine.value(Double.class, "select ev_per_sec from pgque.get_queue_info(?)", queue);
	}

	private static String detail(List<Tuple> rows, int number) {
		return (String) rows.get(number).toList().get(2);
	}

}
