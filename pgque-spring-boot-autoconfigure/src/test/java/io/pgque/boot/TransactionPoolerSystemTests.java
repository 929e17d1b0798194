package io.pgque.boot;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;

import io.pgque.PgqueException;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.annotation.PgqueListener;
import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueTemplate;
import io.pgque.schema.PgqueSchemaMigrator;
import io.pgque.testsupport.PgBouncer;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

/**
 * An application behind a PgBouncer in transaction mode.
 */
@Tag("system")
@ExtendWith(OutputCaptureExtension.class)
class TransactionPoolerSystemTests {

	private final TestDatabase database = TestDatabase.empty();

	private final ApplicationContextRunner runner = new ApplicationContextRunner()
		.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
				DataSourceTransactionManagerAutoConfiguration.class, PgqueSchemaAutoConfiguration.class,
				PgqueAutoConfiguration.class, PgqueTickerAutoConfiguration.class, PgqueListenerAutoConfiguration.class))
		.withPropertyValues("spring.application.name=app", "spring.datasource.username=" + this.database.user(),
				"spring.datasource.password=" + this.database.password());

	@AfterEach
	void dropDatabase() {
		this.database.close();
	}

	@Test
	void installsSendsAndReceives(CapturedOutput output) {
		this.runner.withBean(Numbers.class)
			.withPropertyValues(
					"spring.datasource.url=" + PgBouncer.shared().url(this.database) + "?prepareThreshold=0",
					"pgque.listener.connection.url=" + this.database.url())
			.run((context) -> {
				PgqueTemplate template = context.getBean(PgqueTemplate.class);
				List<String> sent = IntStream.range(0, 500).mapToObj(Integer::toString).toList();
				sent.forEach((number) -> template.send("numbers", number));
				List<String> received = context.getBean(Numbers.class).received;
				await().atMost(Duration.ofSeconds(30)).until(() -> received.size() >= sent.size());
				assertThat(received).containsExactlyElementsOf(sent);
			});
		assertThat(output).doesNotContain(" WARN ", " ERROR ");
	}

	@Test
	void sendNamesTheSettingWhenPreparedStatementsGetLost() {
		new PgqueSchemaMigrator(this.database.dataSource(), this.database.dataSource()).migrate();
		HikariConfig config = new HikariConfig();
		config.setJdbcUrl(PgBouncer.shared().url(this.database));
		config.setUsername(this.database.user());
		config.setPassword(this.database.password());
		config.setMaximumPoolSize(4);
		try (HikariDataSource pool = new HikariDataSource(config)) {
			PgqueClient client = new PgqueClient(pool);
			this.database.query("select pgque.create_queue('numbers')");
			CompletableFuture<?>[] senders = IntStream.range(0, 4)
				.mapToObj((sender) -> CompletableFuture.runAsync(() -> send(client, 1000),
						(task) -> new Thread(task).start()))
				.toArray(CompletableFuture[]::new);
			assertThatExceptionOfType(CompletionException.class)
				.isThrownBy(() -> CompletableFuture.allOf(senders).join())
				.withCauseInstanceOf(PgqueException.class)
				.withMessageContaining("prepareThreshold=0");
		}
	}

	private static void send(PgqueClient client, int count) {
		for (int i = 0; i < count; i++) {
			client.send("numbers", "t", "x", EventExtras.NONE);
		}
	}

	@Test
	void startNamesTheSettingWhenPreparedStatementsGetLost() {
		SQLException lost = new SQLException("ERROR: prepared statement \"S_1\" already exists", "42P05");
		assertThat(new PreparedStatementFailureAnalyzer().analyze(new IllegalStateException(lost)))
			.extracting(FailureAnalysis::getAction)
			.asString()
			.contains("prepareThreshold=0", "spring.datasource.url");
		assertThat(new PreparedStatementFailureAnalyzer().analyze(new SQLException("other", "42601"))).isNull();
	}

	/**
	 * Collects.
	 */
	static class Numbers {

		private final List<String> received = new CopyOnWriteArrayList<>();

		@PgqueListener(queue = "numbers", consumer = "collector")
		void receive(String number) {
			this.received.add(number);
		}

	}

}
