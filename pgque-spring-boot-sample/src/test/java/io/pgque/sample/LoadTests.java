package io.pgque.sample;

import java.time.Duration;
import java.util.List;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.jdbc.core.simple.JdbcClient;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * A thousand orders: every one reaches the end that it should, none twice.
 */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT, properties = "pgque.listener.retry.delay=200ms")
@ExtendWith(OutputCaptureExtension.class)
class LoadTests {

	private static final int ORDERS = 1000;

	private static final int DECLINED = 50;

	@LocalServerPort
	private int port;

	@Autowired
	private JdbcClient jdbc;

	@Test
	void everyOrderReachesItsEndOnce(CapturedOutput output) {
		SampleApi api = new SampleApi(this.port);
		api.load(ORDERS);
		Awaitility.await().atMost(Duration.ofMinutes(2)).untilAsserted(() -> {
			StatsController.Stats stats = api.stats();
			assertThat(stats.orders()).containsEntry(OrderState.COMPLETED, (long) (ORDERS - DECLINED))
				.containsEntry(OrderState.SHIPPED, (long) DECLINED)
				.containsEntry(OrderState.PLACED, 0L)
				.containsEntry(OrderState.PAID, 0L);
			assertThat(stats.deadLetters()).isEqualTo(DECLINED);
		});
		assertThat(
				count("select count(*) from orders where total % 1 <> 0.13 and times_billed = 1 and times_shipped = 1"))
			.as("paid and shipped, both once")
			.isEqualTo(ORDERS - DECLINED);
		assertThat(
				count("select count(*) from orders where total % 1 = 0.13 and times_billed = 0 and times_shipped = 1"))
			.as("declined: shipped once, never paid")
			.isEqualTo(DECLINED);
		List<Long> declined = this.jdbc.sql("select id from orders where total % 1 = 0.13 order by id")
			.query(Long.class)
			.list();
		assertThat(this.jdbc.sql("select (ev_data::json ->> 'orderId')::bigint from pgque.dead_letter order by 1")
			.query(Long.class)
			.list()).as("each declined order is a dead letter, once").isEqualTo(declined);
		assertThat(output).contains("Load: 100 of 1000 orders placed", "Load: done after 1000 of 1000 orders");
	}

	private long count(String sql) {
		return this.jdbc.sql(sql).query(Long.class).single();
	}

}
