package io.pgque.sample;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import io.pgque.testsupport.TestPostgres;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import org.springframework.jdbc.core.simple.JdbcClient;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * The sample dies in the middle of its work and is started again. The database lives on
 * outside of it.
 */
class KillTests {

	private static final int ORDERS = 10_000;

	private static final int KILL_AT = 500;

	private static final Duration LONG_ENOUGH = Duration.ofMinutes(2);

	private final TestPostgres database = TestPostgres.database("kill");

	private final JdbcClient jdbc = this.database.jdbc();

	@TempDir
	private Path logs;

	@Test
	void nothingIsLostAndOnlyOpenBatchesComeTwice() throws Exception {
		try (SampleProcess first = startSample("first.log")) {
			SampleApi api = first.awaitReady();
			assertThat(first.output()).contains("Using the PostgreSQL of spring.datasource.url, ")
				.contains(" at " + this.database.url());
			api.load(ORDERS);
			Awaitility.await()
				.atMost(LONG_ENOUGH)
				.pollDelay(Duration.ZERO)
				.pollInterval(Duration.ofMillis(5))
				.until(() -> orders() >= KILL_AT);
			first.kill();
		}
		// PostgreSQL notices after a moment and rolls back what was open.
		Awaitility.await()
			.atMost(LONG_ENOUGH)
			.until(() -> number("select count(*) from pg_stat_activity where datname = current_database()"
					+ " and backend_type = 'client backend' and pid <> pg_backend_pid()") == 0);
		long committed = orders();
		assertThat(committed).as("killed in the middle").isBetween((long) KILL_AT, ORDERS - 1L);
		Set<Long> openForBilling = ordersInOpenBatch("billing");
		Set<Long> openForShipping = ordersInOpenBatch("shipping");

		try (SampleProcess second = startSample("second.log")) {
			SampleApi api = second.awaitReady();
			Awaitility.await().atMost(LONG_ENOUGH).untilAsserted(() -> {
				assertThat(number("select count(*) from orders where times_shipped = 0")).isZero();
				assertThat(number("select count(*) from orders where times_billed = 0 and total % 1 <> 0.13")).isZero();
				assertThat(number("select count(*) from pgque.dead_letter"))
					.isEqualTo(number("select count(*) from orders where total % 1 = 0.13"));
			});
			assertThat(api.stats().orders().values().stream().mapToLong(Long::longValue).sum())
				.as("what was committed before the kill, and nothing else")
				.isEqualTo(committed);
			assertThat(number("select count(distinct ev_data) from pgque.dead_letter"))
				.isEqualTo(number("select count(*) from pgque.dead_letter"));

			// The events of a batch are handled one by one, then settled together. So
			// only what was in an open batch can come again, and only once more.
			assertThat(openForBilling).containsAll(handledTwice("times_billed"));
			assertThat(openForShipping).containsAll(handledTwice("times_shipped"));
			assertThat(number("select max(greatest(times_billed, times_shipped)) from orders")).isLessThanOrEqualTo(2);

			int before = second.output().length();
			second.stop();
			assertThat(second.output().substring(before)).as("a stop is nothing special")
				.doesNotContain(" ERROR ", " WARN ");
		}
	}

	private SampleProcess startSample(String log) throws IOException {
		return SampleProcess.start(this.logs.resolve(log),
				Map.of("SPRING_DATASOURCE_URL", this.database.url(), "SPRING_DATASOURCE_USERNAME",
						this.database.user()),
				// Small batches: little is open at any time.
				"--pgque.listener.page-size=50", "--pgque.listener.retry.delay=200ms");
	}

	private long orders() {
		return number("select count(*) from orders");
	}

	private long number(String sql) {
		return this.jdbc.sql(sql).query(Long.class).single();
	}

	private Set<Long> ordersInOpenBatch(String consumer) {
		List<Long> orders = this.jdbc.sql("""
				select (e.ev_data::json ->> 'orderId')::bigint
				from pgque.subscription s
				join pgque.consumer c on c.co_id = s.sub_consumer
				cross join lateral pgque.get_batch_events(s.sub_batch) e
				where c.co_name = ? and s.sub_batch is not null""").param(consumer).query(Long.class).list();
		return new HashSet<>(orders);
	}

	private Set<Long> handledTwice(String column) {
		return new HashSet<>(this.jdbc.sql("select id from orders where " + column + " > 1").query(Long.class).list());
	}

}
