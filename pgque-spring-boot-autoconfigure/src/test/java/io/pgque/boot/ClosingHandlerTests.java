package io.pgque.boot;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.annotation.PgqueListener;
import io.pgque.client.PgqueClient;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * A handler closes the application, with the pool that its container settles through.
 */
@PgqueDatabase
class ClosingHandlerTests {

	private final TestDatabase database;

	private final ApplicationContextRunner runner;

	ClosingHandlerTests(TestDatabase database) {
		this.database = database;
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
					DataSourceTransactionManagerAutoConfiguration.class, TransactionAutoConfiguration.class,
					PgqueAutoConfiguration.class, PgqueSchemaAutoConfiguration.class,
					PgqueListenerAutoConfiguration.class))
			.withPropertyValues(database.springProperties())
			.withPropertyValues("pgque.schema.mode=none");
	}

	private static ConditionFactory await() {
		return Awaitility.await().atMost(Duration.ofSeconds(20)).pollInterval(Duration.ofMillis(5));
	}

	@ParameterizedTest
	@CsvSource({ "exclusive, false", "partitioned, false", "exclusive, true" })
	void whatItDidIsSettledAndNothingHangs(String mode, boolean transactional) {
		String queue = "closing-" + mode + "-" + transactional;
		PgqueClient client = new PgqueClient(this.database.dataSource());
		long begin = System.nanoTime();
		this.runner.withBean(Closing.class)
			.withPropertyValues("closing.queue=" + queue, "pgque.listener.mode=" + mode, "pgque.listener.partitions=1",
					"pgque.listener.transactional=" + transactional)
			.run((context) -> {
				HikariDataSource pool = context.getBean(HikariDataSource.class);
				client.sendBatch(queue, "t", List.of("one", "close", "three"));
				client.tick(List.of(queue));
				await().until(pool::isClosed);
			});
		await().until(() -> this.database.value(Integer.class,
				"select count(*)::int from pgque.leases() where queue_name = ?", queue) == 0);
		assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(15));
		List<String> left = new ArrayList<>();
		this.runner.withBean(Rest.class, () -> new Rest(left))
			.withPropertyValues("closing.queue=" + queue, "pgque.listener.mode=" + mode, "pgque.listener.partitions=1")
			.run((context) -> await().until(() -> left.contains("three")));
		if (transactional) {
			// Its connection ended with the pool, and so did its transaction.
			assertThat(left).containsExactly("one", "close", "three");
		}
		else {
			assertThat(left).containsExactly("three");
		}
	}

	static class Closing {

		private final ConfigurableApplicationContext context;

		Closing(ConfigurableApplicationContext context) {
			this.context = context;
		}

		@PgqueListener(queue = "${closing.queue}", consumer = "closing")
		void handle(String payload) {
			if ("close".equals(payload)) {
				this.context.close();
			}
		}

	}

	record Rest(List<String> payloads) {

		@PgqueListener(queue = "${closing.queue}", consumer = "closing")
		void handle(String payload) {
			this.payloads.add(payload);
		}

	}

}
