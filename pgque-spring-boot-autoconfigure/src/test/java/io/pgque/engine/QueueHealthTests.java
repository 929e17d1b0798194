package io.pgque.engine;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * What is late, stuck, pending or standing still.
 */
@PgqueDatabase
class QueueHealthTests {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	TestDatabase database;

	private String queue;

	private String start;

	@BeforeEach
	void createQueue() {
		this.start = this.database.value(String.class, "select now()::text");
		this.queue = "health-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?)", this.queue);
	}

	@AfterEach
	void dropQueue() {
		this.database.query("select pgque.drop_queue(?, true)", this.queue);
	}

	@Test
	void anIdleMemberOfAGroupIsNeitherLateNorStuck() {
		addGroup();
		age("3 hours");
		assertThat(consumer("group.idle")).containsEntry("lag", null).containsEntry("pending_events", null);
		assertThat(health("consumer_lag:group.idle")).containsEntry("status", "ok")
			.containsEntry("detail", "between batches");
		assertThat(health("consumer_lag:group.busy")).containsEntry("status", "critical");
		assertThat(health("consumer_lag:group")).containsEntry("status", "critical");
		assertThat(stuck("1 hour")).containsExactly("group.busy", "group");
		assertThat(stats()).containsEntry("consumers", 3).containsEntry("depth", 5L);
		assertThat(this.database.values(String.class,
				"select consumer_name from pgque.consumer_backlog()" + " where queue_name = ?", this.queue))
			.containsExactly("group", "group.busy");
		assertThat(this.database.values(String.class, "select consumer_name from pgque.in_flight(?)", this.queue))
			.containsExactly("group.busy");
		assertThat(this.database.value(Long.class,
				"select count(*) from pgque.otel_metrics()"
						+ " where labels = jsonb_build_object('queue', ?::text, 'consumer', 'group.idle')",
				this.queue))
			.isZero();
	}

	@Test
	void aConsumerBehindIsFirstWarnedOf() {
		subscribe("consumer");
		assertThat(health("consumer_lag:consumer")).containsEntry("status", "ok");
		age("61 minutes");
		assertThat(health("consumer_lag:consumer")).containsEntry("status", "warning");
		age("61 minutes");
		assertThat(health("consumer_lag:consumer")).containsEntry("status", "critical");
		this.database.update("delete from pgque.tick where tick_queue = ?", id());
		assertThat(health("consumer_lag:consumer")).containsEntry("status", "warning")
			.containsEntry("detail", "position unknown");
	}

	@Test
	void aTickerThatStandsStillIsCritical() {
		assertThat(health("ticker_running")).containsEntry("status", "ok");
		age("11 seconds");
		assertThat(health("ticker_running")).containsEntry("status", "critical");
		this.database.query("select pgque.pause_queue(?)", this.queue);
		assertThat(checks()).doesNotContain("ticker_running");
		assertThat(stats()).containsEntry("ticker_paused", true);
	}

	@Test
	void aRotationThatIsPendingOrOverdueIsWarnedOf() {
		assertThat(health("rotation_health")).containsEntry("status", "ok");
		this.database.update("update pgque.queue set queue_switch_time = now() - interval '4 hours 1 minute'"
				+ " where queue_id = ?", id());
		assertThat(health("rotation_health")).containsEntry("status", "warning");
		this.database.update(
				"update pgque.queue set queue_switch_time = now(), queue_switch_step2 = null" + " where queue_id = ?",
				id());
		assertThat(health("rotation_health")).containsEntry("status", "warning")
			.containsEntry("detail", "step 2 of a rotation is pending");
	}

	@Test
	void theScheduleIsChecked() {
		String system = "select check_name || ' ' || status from pgque.queue_health() where queue_name = 'system'"
				+ " order by 1";
		assertThat(this.database.values(String.class, system)).containsExactly("pg_cron_maint critical",
				"pg_cron_ticker critical");
		this.database.update("update pgque.config set ticker_job_id = 1, maint_job_id = 2");
		assertThat(this.database.values(String.class, system)).containsExactly("pg_cron_maint ok", "pg_cron_ticker ok");
		this.database.update("update pgque.config set ticker_job_id = null, maint_job_id = null");
	}

	@Test
	void stuckConsumersComeWithTheLargestLagFirst() {
		subscribe("new");
		tick(1001, "3 hours", 1);
		tick(1002, "2 hours", 2);
		this.database.query("select pgque.register_consumer_at(?, 'three hours', 1001),"
				+ " pgque.register_consumer_at(?, 'two hours', 1002)", this.queue, this.queue);
		assertThat(stuck(null)).containsExactly("three hours", "two hours");
		assertThat(stuck("150 minutes")).containsExactly("three hours");
		assertThat(stuck("-1 second")).containsExactly("three hours", "two hours", "new");
		this.database.update("delete from pgque.tick where tick_queue = ? and tick_id = 1002", id());
		assertThat(stuck(null)).containsExactly("two hours", "three hours");
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

	private Map<String, Object> stats() {
		return this.database.jdbc().queryForMap("select * from pgque.queue_stats() where queue_name = ?", this.queue);
	}

	private Map<String, Object> consumer(String name) {
		return this.database.jdbc()
			.queryForMap("select * from pgque.consumer_stats() where queue_name = ? and consumer_name = ?", this.queue,
					name);
	}

	private Map<String, Object> health(String check) {
		return this.database.jdbc()
			.queryForMap("select status, detail from pgque.queue_health() where queue_name = ? and check_name = ?",
					this.queue, check);
	}

	private List<String> checks() {
		return this.database.values(String.class, "select check_name from pgque.queue_health() where queue_name = ?",
				this.queue);
	}

	private List<String> stuck(String threshold) {
		String argument = (threshold != null) ? "interval '" + threshold + "'" : "";
		return this.database.values(String.class,
				"select consumer_name from pgque.stuck_consumers(" + argument + ") where queue_name = ?", this.queue);
	}

	/**
	 * A cooperative group at the first tick, of which one member has the second one.
	 */
	private void addGroup() {
		send(5);
		this.database.update("insert into pgque.consumer (co_name) values ('group'), ('group.busy'), ('group.idle')");
		this.database.update(
				"""
						insert into pgque.subscription (sub_id, sub_queue, sub_consumer, sub_last_tick, sub_batch, sub_next_tick,
						                                sub_role)
						select 1000, ?, co_id, last_tick, batch, next_tick, role
						from pgque.consumer
						join (values ('group', 2, null, null, 'coop_main'), ('group.busy', 1, 777, 2, 'coop_member'),
						             ('group.idle', null, null, null, 'coop_member')) v (co_name, last_tick, batch, next_tick, role)
						    using (co_name)""",
				id());
	}

}
