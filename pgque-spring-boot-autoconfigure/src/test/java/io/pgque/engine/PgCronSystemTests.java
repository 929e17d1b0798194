package io.pgque.engine;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.core.JdbcTemplate;

import io.pgque.engine.Engine.SqlError;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests with the pg_cron that the operating system has: a release that knows no seconds,
 * or one that runs the engine.
 */
@Tag("system")
class PgCronSystemTests {

	private static SystemPostgres server;

	private static JdbcTemplate jdbc;

	@BeforeAll
	static void startServer() throws IOException, InterruptedException {
		server = SystemPostgres.start("pg_cron", "cron.database_name=postgres");
		jdbc = server.jdbc();
		jdbc.execute("create extension pg_cron");
	}

	@AfterAll
	static void stopServer() throws IOException, InterruptedException {
		if (server != null) {
			server.close();
		}
	}

	@BeforeEach
	void install() {
		jdbc.execute("drop schema if exists pgque, pgque_internal cascade");
		jdbc.execute(EngineScript.statements());
	}

	@Test
	void releaseWithoutSecondsIsRefused() {
		assumeThat(knowsSeconds()).isFalse();
		SqlError error = SqlError.by(() -> call("start()"));
		assertThat(error.message()).contains("pg_cron 1.5", version(), "PgQue itself works without pg_cron");
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(jobs()).isEmpty();
		assertThat(jdbc.queryForList("select component || ' ' || status from pgque.status()", String.class))
			.contains("scheduler manual", "ticker stopped")
			.doesNotContain("pg_cron unavailable");
	}

	@Test
	void releaseWithSecondsRunsTheEngine() {
		assumeThat(knowsSeconds()).isTrue();
		call("create_queue('orders')");
		call("subscribe('orders', 'reader')");
		call("start()");
		call("start()");
		assertThat(jobs()).containsExactly("pgque_maint", "pgque_retry_events", "pgque_rotate_step2", "pgque_ticker");
		call("send('orders', 'x')");
		await().atMost(Duration.ofSeconds(30))
			.untilAsserted(() -> assertThat(
					jdbc.queryForList("select payload from pgque.receive('orders', 'reader')", String.class))
				.containsExactly("x"));
		call("uninstall()");
		assertThat(jobs()).isEmpty();
	}

	@Test
	void stopRemovesWhatIsLeftOfTheJobs() {
		for (String job : List.of("pgque_ticker", "pgque_maint", "vacuum")) {
			jdbc.queryForList("select cron.schedule(?, '* * * * *', 'select 1')", job);
		}
		jdbc.update("update pgque.config set scheduler = 'pg_cron', ticker_job_id = 1000, maint_job_id = 1001");
		call("stop()");
		assertThat(jobs()).containsExactly("vacuum");
		assertThat(jdbc.queryForList(
				"select config::text from pgque.config where num_nonnulls(scheduler, ticker_job_id, maint_job_id) > 0"))
			.isEmpty();
		jdbc.queryForList("select cron.unschedule('vacuum')");
	}

	private static void call(String function) {
		jdbc.queryForList("select pgque." + function);
	}

	private static List<String> jobs() {
		return jdbc.queryForList("select jobname from cron.job order by jobname", String.class);
	}

	private static String version() {
		return jdbc.queryForObject("select extversion from pg_catalog.pg_extension where extname = 'pg_cron'",
				String.class);
	}

	private static boolean knowsSeconds() {
		int[] parts = Arrays.stream(version().split("[.-]")).mapToInt(Integer::parseInt).toArray();
		return parts[0] > 1 || parts[1] >= 5;
	}

}
