package io.pgque.engine;

import java.math.BigDecimal;
import java.sql.Timestamp;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Figures for dashboards, alerts and metrics.
 */
@PgqueDatabase
class ObservabilityTests {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	TestDatabase database;

	private Engine engine;

	private String queue;

	private String start;

	@BeforeEach
	void createQueue() {
		this.engine = new Engine(this.database.dataSource());
		this.start = this.database.value(String.class, "select now()::text");
		this.queue = "observed-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?)", this.queue);
	}

	@AfterEach
	void dropQueue() {
		this.database.query("select pgque.drop_queue(?, true)", this.queue);
	}

	@ParameterizedTest
	@CsvSource(delimiter = '|',
			textBlock = """
					queue_stats      | queue_name text, queue_id integer, depth bigint, oldest_msg_age interval, consumers integer, \
					events_per_sec numeric, cur_table integer, rotation_age interval, rotation_period interval, ticker_paused boolean, \
					last_tick_time timestamp with time zone, last_tick_id bigint, dlq_count bigint
					consumer_stats   | queue_name text, consumer_name text, lag interval, pending_events bigint, \
					last_batch_start timestamp with time zone, batch_active boolean, batch_id bigint
					consumer_backlog | queue_name text, consumer_name text, pending_events bigint, oldest_age interval, unticked boolean
					queue_health     | queue_name text, check_name text, status text, detail text
					otel_metrics     | metric_name text, metric_type text, value numeric, labels jsonb
					stuck_consumers  | queue_name text, consumer_name text, lag interval, last_active timestamp with time zone
					in_flight        | consumer_name text, batch_id bigint, batch_age interval, estimated_events bigint
					throughput       | bucket_start timestamp with time zone, events bigint, events_per_sec numeric
					error_rate       | bucket_start timestamp with time zone, retries bigint, dead_letters bigint
					""")
	void columnsAreAsPromised(String function, String columns) {
		assertThat(this.database.value(String.class,
				"select pg_get_function_result(oid) from pg_proc"
						+ " where pronamespace = 'pgque'::regnamespace and proname = ? and prosecdef",
				function))
			.isEqualTo("TABLE(" + columns + ")");
	}

	@Test
	void aNewQueueHasNoFigures() {
		assertThat(stats()).containsEntry("depth", 0L)
			.containsEntry("oldest_msg_age", null)
			.containsEntry("consumers", 0)
			.containsEntry("events_per_sec", null)
			.containsEntry("cur_table", 0)
			.containsEntry("ticker_paused", false)
			.containsEntry("last_tick_id", 1L)
			.containsEntry("dlq_count", 0L);
		this.database.update("delete from pgque.tick where tick_queue = ?", id());
		assertThat(stats()).containsEntry("depth", 0L)
			.containsEntry("last_tick_time", null)
			.containsEntry("last_tick_id", null);
		assertThat(health("ticker_running")).containsEntry("status", "critical").containsEntry("detail", "no tick");
		assertThat(metrics()).containsEntry("pgque.queue.depth", 0).containsEntry("pgque.queue.throughput", 0);
	}

	@Test
	void depthAndAgeAreThoseOfTheSlowestConsumer() {
		subscribe("slow");
		tick(1001, "10 minutes", 100);
		this.database.query("select pgque.register_consumer_at(?, 'quick', 1001)", this.queue);
		tick(1002, "1 minute", 400);
		assertThat(stats()).containsEntry("depth", 400L)
			.containsEntry("consumers", 2)
			.containsEntry("last_tick_id", 1002L);
		this.database.query("select pgque.register_consumer_at(?, 'slow', 1001)", this.queue);
		assertThat(stats()).containsEntry("depth", 300L);
		assertThat(seconds("select oldest_msg_age from pgque.queue_stats() where queue_name = ?")).isBetween(600.0,
				700.0);
	}

	@Test
	void eventsASecondComeFromTheTwoNewestTicks() {
		tick(1001, "30 seconds", 100);
		assertThat(stats()).containsEntry("events_per_sec", null);
		tick(1002, "20 seconds", 600);
		assertThat((BigDecimal) stats().get("events_per_sec")).isEqualByComparingTo("50");
		tick(1004, "10 seconds", 700);
		assertThat(stats()).containsEntry("events_per_sec", null);
		tick(1005, "10 seconds", 800);
		assertThat(stats()).containsEntry("events_per_sec", null);
	}

	@Test
	void aTickThatStandsInTwoSlotsCountsOnce() {
		subscribe("consumer");
		tick(1001, "30 seconds", 100);
		tick(1002, "20 seconds", 600);
		this.database.update(
				"insert into pgque.tick select tick_queue, tick_id, tick_time, tick_snapshot, tick_event_seq,"
						+ " tick_event_slots, tick_xid, (tick_slot + 1) % 3 from pgque.tick where tick_queue = ?",
				id());
		assertThat(this.database.query("select * from pgque.queue_stats() where queue_name = ?", this.queue))
			.hasSize(1);
		assertThat((BigDecimal) stats().get("events_per_sec")).isEqualByComparingTo("50");
		assertThat(this.database.query("select * from pgque.consumer_stats() where queue_name = ?", this.queue))
			.hasSize(1);
		assertThat(this.database.value(Long.class,
				"select sum(events)::bigint from pgque.throughput(?, '1 hour', '1 minute')", this.queue))
			.isEqualTo(600);
	}

	@Test
	void deadLettersAreCounted() {
		subscribe("consumer");
		addDeadLetters(3, "0");
		assertThat(stats()).containsEntry("dlq_count", 3L);
		assertThat(health("dlq_health")).containsEntry("status", "ok").containsEntry("detail", "3 dead letters");
		assertThat(metrics()).containsEntry("pgque.message.dead_lettered", 3);
		addDeadLetters(998, "0");
		assertThat(health("dlq_health")).containsEntry("status", "warning");
	}

	@Test
	void aConsumerIsDescribed() {
		subscribe("consumer");
		send(7);
		assertThat(consumer("consumer")).containsEntry("pending_events", 7L)
			.containsEntry("batch_active", false)
			.containsEntry("batch_id", null);
		assertThat(this.database.query("select * from pgque.in_flight(?)", this.queue)).isEmpty();
		Long batch = this.database.value(Long.class, "select pgque.next_batch(?, 'consumer')", this.queue);
		assertThat(consumer("consumer")).containsEntry("pending_events", 7L)
			.containsEntry("batch_active", true)
			.containsEntry("batch_id", batch);
		send(2);
		assertThat(this.database.jdbc().queryForMap("select * from pgque.in_flight(?)", this.queue))
			.containsEntry("consumer_name", "consumer")
			.containsEntry("batch_id", batch)
			.containsEntry("estimated_events", 7L);
		assertThat(seconds("select batch_age from pgque.in_flight(?)")).isBetween(0.0, 60.0);
		this.database.query("select pgque.ack(?)", batch);
		assertThat(consumer("consumer")).containsEntry("pending_events", 2L).containsEntry("batch_active", false);
		assertThat(this.database.query("select * from pgque.in_flight('nowhere')")).isEmpty();
		assertThat(this.database.query("select * from pgque.in_flight(null)")).isEmpty();
	}

	@Test
	void metricsHaveNamesTypesAndLabels() {
		subscribe("consumer");
		send(3);
		assertThat(metrics())
			.containsOnlyKeys("pgque.queue.depth", "pgque.queue.oldest_message_age_seconds", "pgque.queue.throughput",
					"pgque.message.dead_lettered", "pgque.consumer.lag_seconds", "pgque.consumer.pending_events")
			.containsEntry("pgque.queue.depth", 3)
			.containsEntry("pgque.consumer.pending_events", 3);
		assertThat(this.database.values(String.class, "select distinct metric_type from pgque.otel_metrics()"))
			.containsExactly("gauge");
		assertThat(this.database.values(String.class,
				"select distinct labels::text from pgque.otel_metrics() where labels ->> 'queue' = ? order by 1",
				this.queue))
			.containsExactly("{\"queue\": \"" + this.queue + "\", \"consumer\": \"consumer\"}",
					"{\"queue\": \"" + this.queue + "\"}");
	}

	@Test
	void theBacklogIsTrueForAQueueThatIsIdle() {
		subscribe("consumer");
		age("1 day");
		assertThat(backlog()).containsEntry("pending_events", 0L)
			.containsEntry("oldest_age", null)
			.containsEntry("unticked", false);
		this.database.query("select pgque.send(?, 'x'::text)", this.queue);
		assertThat(backlog()).containsEntry("oldest_age", null).containsEntry("unticked", true);
		this.database.query("select * from pgque.tick_now(array[?])", this.queue);
		assertThat(backlog()).containsEntry("pending_events", 1L).containsEntry("unticked", false);
		assertThat(seconds("select oldest_age from pgque.consumer_backlog() where queue_name = ?")).isBetween(0.0,
				60.0);
		age("1 hour");
		assertThat(seconds("select oldest_age from pgque.consumer_backlog() where queue_name = ?")).isBetween(3600.0,
				3700.0);
		this.database.query("select pgque.ack(pgque.next_batch(?, 'consumer'))", this.queue);
		assertThat(backlog()).containsEntry("pending_events", 0L).containsEntry("oldest_age", null);
		this.database.query("select pgque.pause_queue(?)", this.queue);
		assertThat(backlog()).containsEntry("unticked", null);
	}

	@Test
	void throughputIsCountedInBucketsFromTheEpoch() {
		this.database.update("update pgque.tick set tick_time = now() - interval '2 days' where tick_queue = ?", id());
		tickAt(1001, "date_trunc('hour', now()) - interval '61 minutes'", 50);
		tickAt(1002, "date_trunc('hour', now()) - interval '60 minutes'", 150);
		tickAt(1003, "date_trunc('hour', now()) - interval '59 minutes 59 seconds'", 250);
		tickAt(1005, "date_trunc('hour', now()) - interval '30 minutes'", 550);
		List<Map<String, Object>> buckets = this.database.query(
				"select bucket_start = date_trunc('hour', now()) - offset_minutes * interval '1 minute' as right,"
						+ " events, events_per_sec from (select *, row_number() over (order by bucket_start) as n"
						+ " from pgque.throughput(?, '3 hours', '15 minutes')) t"
						+ " join (values (1, 75), (2, 60), (3, 30)) v (n, offset_minutes) using (n) order by n",
				this.queue);
		assertThat(buckets).extracting("right").containsExactly(true, true, true);
		assertThat(buckets).extracting("events").containsExactly(50L, 200L, 300L);
		assertThat(buckets).extracting("events_per_sec")
			.usingElementComparator((a, b) -> new BigDecimal(a.toString()).compareTo(new BigDecimal(b.toString())))
			.containsExactly("0.056", "0.222", "0.333");
		assertThat(this.database.query("select * from pgque.throughput(?, '1 millisecond', '15 minutes')", this.queue))
			.isEmpty();
	}

	@Test
	void failuresAreCountedInBuckets() {
		subscribe("consumer");
		addDeadLetters(2, "0");
		addDeadLetters(3, "2 days");
		addDeadLetters(4, "30 days");
		this.database.query("select pgque.event_retry_raw(?, 'consumer', now() + interval '1 day', n, now(), 1,"
				+ " 't', 'd', null, null, null, null) from generate_series(1, 5) n", this.queue);
		List<Map<String, Object>> buckets = this.database.query("select * from pgque.error_rate(?, '7 days', '1 day')",
				this.queue);
		assertThat(buckets).extracting("retries").containsExactly(0L, 0L, 5L);
		assertThat(buckets).extracting("dead_letters").containsExactly(3L, 2L, 0L);
		assertThat(buckets).allSatisfy(
				(bucket) -> assertThat(((Timestamp) bucket.get("bucket_start")).getTime() % 86_400_000).isZero());
	}

	@ParameterizedTest
	@ValueSource(strings = { "throughput", "error_rate" })
	void argumentsAreChecked(String function) {
		for (String bucket : List.of("null", "'0'", "'-1 minute'")) {
			assertThat(
					this.engine.error("select * from pgque." + function + "(?, '1 hour', " + bucket + ")", this.queue)
						.message())
				.contains("bucket size must be > 0");
		}
		assertThat(this.engine.error("select * from pgque." + function + "('nowhere', '1 hour', '1 minute')"))
			.isEqualTo(SqlError.raised("queue not found: nowhere"));
	}

	@Test
	void readersReadAndWritersDoNot() {
		subscribe("consumer");
		Engine reader = new Engine(this.database.createLogin("pgque_reader").dataSource());
		Engine writer = new Engine(this.database.createLogin("pgque_writer").dataSource());
		Engine nobody = new Engine(this.database.createLogin().dataSource());
		for (String call : List.of("queue_stats()", "consumer_stats()", "consumer_backlog()", "queue_health()",
				"otel_metrics()", "stuck_consumers()", "in_flight('" + this.queue + "')",
				"throughput('" + this.queue + "', '1 hour', '1 minute')",
				"error_rate('" + this.queue + "', '1 hour', '1 minute')")) {
			String query = "select * from pgque." + call;
			reader.rows(query);
			assertThat(writer.error(query).state()).as(call).isEqualTo("42501");
			assertThat(nobody.error(query).state()).as(call).isEqualTo("42501");
		}
	}

	private int id() {
		return this.database.value(Integer.class, "select queue_id from pgque.queue where queue_name = ?", this.queue);
	}

	private void subscribe(String consumer) {
		this.database.query("select pgque.subscribe(?, ?)", this.queue, consumer);
	}

	private void send(int count) {
		this.database.query("select pgque.send(?, 'x'::text) from generate_series(1, ?)", this.queue, count);
		this.database.query("select * from pgque.tick_now(array[?])", this.queue);
	}

	private void tick(long id, String age, long seq) {
		tickAt(id, "timestamptz '" + this.start + "' - interval '" + age + "'", seq);
	}

	private void tickAt(long id, String time, long seq) {
		this.database.update("insert into pgque.tick (tick_queue, tick_id, tick_time, tick_event_seq) values (?, ?, "
				+ time + ", ?)", id(), id, seq);
	}

	private void age(String interval) {
		this.database.update("update pgque.tick set tick_time = tick_time - ?::interval where tick_queue = ?", interval,
				id());
	}

	private void addDeadLetters(int count, String age) {
		this.database.update("""
				insert into pgque.dead_letter (dl_queue_id, dl_consumer_id, ev_id, ev_time, dl_time)
				select sub_queue, sub_consumer, n + coalesce((select max(ev_id) from pgque.dead_letter), 0), now(),
				       now() - ?::interval
				from pgque.subscription, generate_series(1, ?) n where sub_queue = ?""", age, count, id());
	}

	private Map<String, Object> stats() {
		return this.database.jdbc().queryForMap("select * from pgque.queue_stats() where queue_name = ?", this.queue);
	}

	private Map<String, Object> consumer(String name) {
		return this.database.jdbc()
			.queryForMap("select * from pgque.consumer_stats() where queue_name = ? and consumer_name = ?", this.queue,
					name);
	}

	private Map<String, Object> backlog() {
		return this.database.jdbc()
			.queryForMap("select * from pgque.consumer_backlog() where queue_name = ?", this.queue);
	}

	private Map<String, Object> health(String check) {
		return this.database.jdbc()
			.queryForMap("select status, detail from pgque.queue_health() where queue_name = ? and check_name = ?",
					this.queue, check);
	}

	private Map<String, Integer> metrics() {
		return this.database
			.query("select metric_name, value from pgque.otel_metrics() where labels ->> 'queue' = ?", this.queue)
			.stream()
			.collect(Collectors.toMap((row) -> (String) row.get("metric_name"),
					(row) -> ((BigDecimal) row.get("value")).intValue()));
	}

	private double seconds(String query) {
		return this.database.value(Double.class, "select extract(epoch from (" + query + "))::float8", this.queue);
	}

}
