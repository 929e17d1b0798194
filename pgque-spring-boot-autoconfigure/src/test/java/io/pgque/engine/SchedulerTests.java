package io.pgque.engine;

import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.jdbc.core.JdbcTemplate;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for the schedulers of the database, against {@link FakeScheduler}; the real
 * pg_cron is in {@link PgCronSystemTests}.
 */
class SchedulerTests {

	private static final List<String> CRON_JOBS = List.of("pgque_maint|30 seconds|SELECT pgque.maint()",
			"pgque_retry_events|30 seconds|SELECT pgque.maint_retry_events()",
			"pgque_rotate_step2|10 seconds|SELECT pgque.maint_rotate_tables_step2()",
			"pgque_ticker|1 second|CALL pgque.ticker_loop()");

	private static final List<String> TIMETABLE_JOBS = List.of("pgque_maint|@every 30 seconds|SELECT pgque.maint()",
			"pgque_retry_events|@every 30 seconds|SELECT pgque.maint_retry_events()",
			"pgque_rotate_step2|@every 10 seconds|SELECT pgque.maint_rotate_tables_step2()",
			"pgque_ticker|@every 1 second|CALL pgque.ticker_loop()");

	private TestDatabase database;

	@BeforeEach
	void createDatabase() {
		this.database = TestDatabase.migrated();
	}

	@AfterEach
	void dropDatabase() {
		this.database.close();
	}

	@Test
	void startNeedsPgCron() {
		SqlError error = SqlError.by(() -> call("start()"));
		assertThat(error.message()).contains("pg_cron", "PgQue itself works without pg_cron");
		assertThat(error.state()).isEqualTo("P0001");
	}

	@Test
	void startNeedsAPgCronThatKnowsSeconds() {
		FakeScheduler.installCron(this.database, null);
		for (String version : List.of("1.4-1", "1.4", "1.4.2", "1.0", "0.9", "1", "unknown")) {
			FakeScheduler.setCronVersion(this.database, version);
			SqlError error = SqlError.by(() -> call("start()"));
			assertThat(error.message()).contains("pg_cron 1.5", version, "PgQue itself works without pg_cron");
			assertThat(error.state()).isEqualTo("P0001");
		}
		assertThat(cronJobs()).isEmpty();
		assertThat(scheduler()).isEqualTo("none");
	}

	@Test
	void startMakesFourJobs() {
		FakeScheduler.installCron(this.database, null);
		for (String version : List.of("1.5", "1.5-1", "1.5.2", "1.6", "1.10", "2.0", "2")) {
			FakeScheduler.setCronVersion(this.database, version);
			call("start()");
			assertThat(cronJobs()).as(version).isEqualTo(CRON_JOBS);
			assertThat(scheduler()).isEqualTo("pg_cron ticker=pgque_ticker maint=pgque_maint");
			assertThat(this.database.values(String.class, "select distinct database from cron.job"))
				.containsExactly(this.database.name());
			call("stop()");
			assertThat(cronJobs()).isEmpty();
		}
	}

	@Test
	void startCanBeRepeated() {
		FakeScheduler.installCron(this.database, "1.6");
		call("start()");
		this.database.update("update cron.job set schedule = '0 0 1 1 *' where jobname = 'pgque_maint'");
		call("start()");
		assertThat(cronJobs()).isEqualTo(CRON_JOBS);
		assertThat(scheduler()).isEqualTo("pg_cron ticker=pgque_ticker maint=pgque_maint");
	}

	@Test
	void jobsMayHaveBeenRemovedByHand() {
		FakeScheduler.installCron(this.database, "1.6");
		call("start()");
		this.database.update("delete from cron.job where jobname in ('pgque_ticker', 'pgque_retry_events')");
		call("start()");
		assertThat(cronJobs()).isEqualTo(CRON_JOBS);
		this.database.update("delete from cron.job");
		call("stop()");
		assertThat(scheduler()).isEqualTo("none");
	}

	@Test
	void jobsThatNobodyRememberedAreReplaced() {
		FakeScheduler.installCron(this.database, "1.6");
		call("start()");
		this.database.update("update pgque.config set scheduler = null, ticker_job_id = null, maint_job_id = null");
		call("start()");
		assertThat(cronJobs()).isEqualTo(CRON_JOBS);
	}

	@Test
	void stopRemovesTheJobs() {
		FakeScheduler.installCron(this.database, "1.6");
		call("start()");
		this.database
			.query("select cron.schedule('vacuum', '0 3 * * *', 'vacuum'), cron.schedule('0 3 * * *', 'analyze')");
		this.database.update("insert into cron.job (schedule, command, database, username, jobname)"
				+ " values ('1 second', 'CALL pgque.ticker_loop()', 'another', 'somebody', 'pgque_ticker')");
		call("stop()");
		assertThat(this.database.values(String.class, "select command from cron.job"))
			.containsExactlyInAnyOrder("analyze", "CALL pgque.ticker_loop()", "vacuum");
		assertThat(scheduler()).isEqualTo("none");
		call("stop()");
		assertThat(scheduler()).isEqualTo("none");
	}

	@Test
	void stoppingWhatWasNotStartedDoesNothing() {
		call("stop()");
		call("stop_timetable()");
		FakeScheduler.installCron(this.database, "1.6");
		this.database.execute("drop table cron.job");
		FakeScheduler.installTimetable(this.database, 12);
		this.database.execute("drop function timetable.delete_job(text)");
		call("stop()");
		call("stop_timetable()");
		assertThat(scheduler()).isEqualTo("none");
	}

	@Test
	void schedulersThatAreGoneNeedNoStopping() {
		FakeScheduler.installCron(this.database, "1.6");
		call("start()");
		this.database.execute("drop schema cron cascade");
		FakeScheduler.setCronVersion(this.database, null);
		call("stop()");
		assertThat(scheduler()).isEqualTo("none");
		FakeScheduler.installTimetable(this.database, 12);
		call("start_timetable()");
		this.database.execute("drop schema timetable cascade");
		call("stop()");
		assertThat(scheduler()).isEqualTo("none");
	}

	@Test
	void commandsOfTheJobsRun() {
		FakeScheduler.installCron(this.database, "1.6");
		call("start()");
		this.database.query("select pgque.create_queue('orders'), pgque.set_tick_period_ms(1000)");
		this.database.query("select pgque.send('orders', 'x')");
		this.database.values(String.class, "select command from cron.job").forEach(this.database::execute);
		assertThat(this.database.value(Long.class, "select last_tick_id from pgque.get_queue_info('orders')"))
			.isEqualTo(2);
	}

	@ParameterizedTest
	@ValueSource(ints = { 11, 12 })
	void timetableMakesFourJobs(int arguments) {
		FakeScheduler.installTimetable(this.database, arguments);
		for (int rate : new int[] { 1, 20, 1000 }) {
			call("start_timetable(%d)".formatted(rate));
			assertThat(timetableJobs()).isEqualTo(TIMETABLE_JOBS);
			assertThat(scheduler()).isEqualTo("pg_timetable ticker=pgque_ticker maint=pgque_maint");
			assertThat(tickPeriod()).isEqualTo(1000 / rate);
		}
		call("start_timetable()");
		assertThat(timetableJobs()).isEqualTo(TIMETABLE_JOBS);
		assertThat(tickPeriod()).isEqualTo(100);
		assertThat(this.database.values(String.class,
				"select distinct format('%s %s %s %s', kind, max_instances, live, self_destruct) from timetable.chain"))
			.containsExactly("SQL 1 t f");
		call("stop_timetable()");
		assertThat(timetableJobs()).isEmpty();
		assertThat(scheduler()).isEqualTo("none");
	}

	@Test
	void timetableOfAnUnknownShapeIsRefused() {
		FakeScheduler.installTimetable(this.database, 12);
		this.database.execute("drop function timetable.add_job");
		assertThat(SqlError.by(() -> call("start_timetable()")).message()).contains("timetable.add_job");
	}

	@Test
	void rateMustDivideASecond() {
		for (String rate : List.of("NULL", "0", "-1", "3", "300", "1001", "2000")) {
			SqlError error = SqlError.by(() -> call("start_timetable(%s)".formatted(rate)));
			assertThat(error.message()).contains("ticks_per_second", rate);
			assertThat(error.state()).isEqualTo("P0001");
		}
	}

	@Test
	void timetableIsNeeded() {
		SqlError error = SqlError.by(() -> call("start_timetable()"));
		assertThat(error.message()).contains("pg_timetable");
		assertThat(error.state()).isEqualTo("P0001");
	}

	@Test
	void timetableOfSomebodyElseIsRefused() {
		FakeScheduler.installTimetable(this.database, 12);
		call("start_timetable()");
		String somebody = this.database.createLogin().name();
		for (String object : List.of("schema timetable", "function timetable.add_job", "function timetable.delete_job",
				"table timetable.chain", "domain timetable.cron", "type timetable.command_kind")) {
			this.database.execute("alter %s owner to %s".formatted(object, somebody));
			for (String call : List.of("start_timetable()", "stop_timetable()", "stop()")) {
				SqlError error = SqlError.by(() -> call(call));
				assertThat(error.message()).as(object).contains("untrusted pg_timetable schema owner", somebody);
				assertThat(error.state()).isEqualTo("P0001");
			}
			this.database.execute("alter %s owner to %s".formatted(object, this.database.user()));
		}
		assertThat(timetableJobs()).isEqualTo(TIMETABLE_JOBS);
		call("stop()");
		assertThat(timetableJobs()).isEmpty();
	}

	@Test
	void oneSchedulerTakesTheJobsFromTheOther() {
		FakeScheduler.installCron(this.database, "1.6");
		FakeScheduler.installTimetable(this.database, 12);
		call("start()");
		call("start_timetable()");
		assertThat(cronJobs()).isEmpty();
		assertThat(timetableJobs()).isEqualTo(TIMETABLE_JOBS);
		call("start()");
		assertThat(timetableJobs()).isEmpty();
		assertThat(cronJobs()).isEqualTo(CRON_JOBS);
		call("stop_timetable()");
		assertThat(cronJobs()).as("jobs of pg_cron").isEqualTo(CRON_JOBS);
		call("start_timetable()");
		call("stop()");
		assertThat(cronJobs()).isEmpty();
		assertThat(timetableJobs()).isEmpty();
		assertThat(scheduler()).isEqualTo("none");
	}

	@Test
	void failedStartLeavesEverythingAsItWas() {
		FakeScheduler.installCron(this.database, "1.6");
		FakeScheduler.installTimetable(this.database, 12);
		call("start()");
		this.database.execute("drop function timetable.add_job");
		SqlError.by(() -> call("start_timetable(20)"));
		assertThat(cronJobs()).isEqualTo(CRON_JOBS);
		assertThat(scheduler()).isEqualTo("pg_cron ticker=pgque_ticker maint=pgque_maint");
		assertThat(tickPeriod()).isEqualTo(100);
	}

	@Test
	void statusTellsWhoRunsTheEngine() {
		assertThat(status()).containsExactly("postgresql info", "pgque info", "scheduler manual", "ticker stopped",
				"maintenance stopped", "pg_cron unavailable", "pg_timetable unavailable", "queues info",
				"consumers info");
		assertThat(detail("pg_cron")).containsSubsequence("pgque.ticker()", "pgque.maint()");

		FakeScheduler.installCron(this.database, "1.6");
		call("start()");
		assertThat(status()).containsExactly("postgresql info", "pgque info", "scheduler pg_cron", "ticker scheduled",
				"maintenance scheduled", "pg_timetable unavailable", "queues info", "consumers info");
		Map<String, Object> config = this.database.query("select ticker_job_id, maint_job_id from pgque.config").get(0);
		assertThat(detail("scheduler")).contains("job " + config.get("ticker_job_id"),
				"job " + config.get("maint_job_id"), "100 ms");
		assertThat(detail("ticker")).contains("job " + config.get("ticker_job_id"));
		assertThat(detail("maintenance")).contains("job " + config.get("maint_job_id"));

		FakeScheduler.installTimetable(this.database, 11);
		call("start_timetable(20)");
		assertThat(status()).containsExactly("postgresql info", "pgque info", "scheduler pg_timetable",
				"ticker scheduled", "maintenance scheduled", "queues info", "consumers info");
		assertThat(detail("scheduler")).contains("50 ms");
	}

	@Test
	void administratorsScheduleAndNobodyElse() {
		FakeScheduler.installCron(this.database, "1.6");
		FakeScheduler.installTimetable(this.database, 12);
		JdbcTemplate reader = this.database.createLogin("pgque_reader").jdbc();
		JdbcTemplate writer = this.database.createLogin("pgque_writer").jdbc();
		JdbcTemplate admin = this.database.createLogin("pgque_admin").jdbc();
		for (String function : List.of("stop()", "start_timetable()", "stop_timetable()", "start()")) {
			for (JdbcTemplate user : List.of(reader, writer)) {
				assertThat(SqlError.by(() -> user.queryForList("select pgque." + function)).state()).isEqualTo("42501");
			}
			admin.queryForList("select pgque." + function);
		}
		assertThat(this.database.values(String.class, "select distinct username from cron.job"))
			.as("whom the jobs run as")
			.containsExactly(this.database.user());
	}

	private void call(String function) {
		this.database.query("select pgque." + function);
	}

	private List<String> cronJobs() {
		return this.database.values(String.class,
				"select concat_ws('|', jobname, schedule, command) from cron.job order by jobname");
	}

	private List<String> timetableJobs() {
		return this.database.values(String.class,
				"select concat_ws('|', chain_name, run_at, command) from timetable.chain order by chain_name");
	}

	private Integer tickPeriod() {
		return this.database.value(Integer.class, "select tick_period_ms from pgque.config");
	}

	private List<String> status() {
		return this.database.values(String.class, "select component || ' ' || status from pgque.status()");
	}

	private String detail(String component) {
		return this.database.value(String.class, "select detail from pgque.status() where component = ?", component);
	}

	/**
	 * What the engine remembers of its scheduler, with the names of the jobs whose ids it
	 * has.
	 */
	private String scheduler() {
		Map<String, Object> config = this.database
			.query("select scheduler, ticker_job_id, maint_job_id from pgque.config")
			.get(0);
		if (config.values().stream().noneMatch((value) -> value != null)) {
			return "none";
		}
		boolean cron = "pg_cron".equals(config.get("scheduler"));
		String query = cron ? "select jobname from cron.job where jobid = ?"
				: "select chain_name from timetable.chain where chain_id = ?";
		return config.get("scheduler") + " ticker="
				+ this.database.value(String.class, query, config.get("ticker_job_id")) + " maint="
				+ this.database.value(String.class, query, config.get("maint_job_id"));
	}

}
