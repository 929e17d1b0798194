package io.pgque.listener;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueAdmin;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.flywaydb.core.Flyway;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static io.pgque.listener.ContainerDeliveryTests.count;
import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for containers whose server goes away, with a server of their own.
 */
@ExtendWith(OutputCaptureExtension.class)
class ServerRestartTests {

	@TempDir
	private Path folder;

	private int port;

	private @Nullable DefaultPgqueMessageListenerContainer container;

	@AfterEach
	void tearDown() {
		if (this.container != null) {
			this.container.stop();
		}
	}

	@Test
	void consumptionGoesOnAfterARestartAndStopsQuicklyWithoutServer(CapturedOutput output) throws Exception {
		EmbeddedPostgres server = start();
		this.port = server.getPort();
		PGSimpleDataSource direct = direct();
		migrate(direct);
		WakeupListener wakeups = new WakeupListener(direct);
		List<Long> handled = new CopyOnWriteArrayList<>();
		try (HikariDataSource pool = pool(direct)) {
			DefaultPgqueMessageListenerContainer container = container(pool, wakeups, handled);
			PgqueClient sender = new PgqueClient(direct);
			container.subscribe();
			this.container = container;
			container.start();
			send(sender);
			await().until(() -> handled.size() == 10);
			await().until(() -> wakeups.isListening("orders"));

			server.close();
			await().until(() -> container.getCounters().failures() >= 1 && !wakeups.isListening("orders"));
			server = start();
			send(sender);
			await().atMost(Duration.ofSeconds(10)).until(() -> handled.size() == 20);
			await().until(() -> wakeups.isListening("orders"));
			// Told when the batch is settled, a moment after the last message was
			// handled.
			String recovered = "Receiving by listener 'test' (queue 'orders', consumer 'billing') works again";
			await().until(() -> count(output, recovered) == 1);
			long failures = container.getCounters().failures();
			assertThat(count(output, "Receiving by listener 'test'")).isLessThanOrEqualTo((int) failures + 1);

			server.close();
			await().until(() -> container.getCounters().failures() > failures);
			assertThat(time(container::stop)).isLessThan(Duration.ofSeconds(2));
			assertThat(container.isRunning()).isFalse();
			assertThat(time(wakeups::destroy)).isLessThan(Duration.ofMillis(1200));
		}
		finally {
			server.close();
		}
	}

	private EmbeddedPostgres start() throws IOException {
		EmbeddedPostgres.Builder builder = EmbeddedPostgres.builder()
			.setDataDirectory(this.folder)
			.setCleanDataDirectory(false)
			.setServerConfig("fsync", "off");
		return ((this.port != 0) ? builder.setPort(this.port) : builder).start();
	}

	private PGSimpleDataSource direct() {
		PGSimpleDataSource dataSource = new PGSimpleDataSource();
		dataSource.setUrl("jdbc:postgresql://localhost:" + this.port + "/postgres");
		dataSource.setUser("postgres");
		return dataSource;
	}

	private static HikariDataSource pool(PGSimpleDataSource direct) {
		HikariConfig config = new HikariConfig();
		config.setDataSource(direct);
		config.setMaximumPoolSize(2);
		// Its default: a stop must not wait for it.
		config.setConnectionTimeout(30_000);
		return new HikariDataSource(config);
	}

	private static void migrate(PGSimpleDataSource dataSource) {
		Flyway.configure()
			.dataSource(dataSource)
			.locations("classpath:io/pgque/schema/log")
			.schemas("pgque")
			.defaultSchema("pgque")
			.placeholderReplacement(false)
			.group(true)
			.load()
			.migrate();
	}

	private static DefaultPgqueMessageListenerContainer container(HikariDataSource pool, WakeupListener wakeups,
			List<Long> handled) {
		PgqueContainerProperties properties = new PgqueContainerProperties();
		properties.setPollInterval(Duration.ofMillis(500));
		DefaultPgqueMessageListenerContainer container = new DefaultPgqueMessageListenerContainer(
				new ListenerIdentity("test", "orders", "billing"), new PgqueClient(pool),
				new PgqueAdmin(pool, List.of()), ListenerFixture.routes((message) -> handled.add(message.id())),
				new DefaultPgqueErrorHandler(), properties);
		container.setWakeupListener(wakeups);
		return container;
	}

	private static void send(PgqueClient sender) {
		sender.sendBatch("orders", "order", List.of("1", "2", "3", "4", "5", "6", "7", "8", "9", "10"));
		sender.tick(List.of("orders"));
	}

}
