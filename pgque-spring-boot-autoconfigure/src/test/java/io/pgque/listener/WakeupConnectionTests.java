package io.pgque.listener;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static io.pgque.listener.ContainerDeliveryTests.count;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for what the connection of {@link WakeupListener} costs others: the pool, and the
 * server.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class WakeupConnectionTests {

	/**
	 * So many pages of 8 kB has the server's queue of notifications by default.
	 */
	private static final int QUEUE_PAGES = 1_048_576;

	private final TestDatabase database;

	WakeupConnectionTests(TestDatabase database) {
		this.database = database;
	}

	@Test
	void poolOfOneIsNotMissingAConnection(CapturedOutput output) throws Exception {
		HikariConfig config = new HikariConfig();
		config.setDataSource(this.database.dataSource());
		config.setMaximumPoolSize(1);
		config.setLeakDetectionThreshold(2000);
		config.setMaxLifetime(30_000);
		config.setConnectionTimeout(1000);
		try (HikariDataSource pool = new HikariDataSource(config);
				ListenerFixture fixture = new ListenerFixture(this.database, pool)) {
			WakeupListener wakeups = fixture.wakeups();
			fixture.properties.setFallbackPollInterval(Duration.ofHours(1));
			AtomicInteger handled = new AtomicInteger();
			var container = fixture.container("leak", ListenerFixture.routes((message) -> handled.incrementAndGet()),
					(created) -> created.setWakeupListener(wakeups));
			container.start();
			await().until(() -> wakeups.isListening("leak"));
			Awaitility.await()
				.atMost(Duration.ofSeconds(20))
				.during(Duration.ofMillis(2500))
				.pollInterval(Duration.ofMillis(100))
				.until(() -> {
					int before = handled.get();
					fixture.send("leak", "type", "payload");
					await().atMost(Duration.ofSeconds(5)).until(() -> handled.get() == before + 1);
					return pool.getHikariPoolMXBean().getTotalConnections() == 1;
				});
			assertThat(container.getCounters().failures()).isZero();
			assertThat(count(output, "Apparent connection leak detected")).isZero();
		}
	}

	@Test
	void slowHandlerDoesNotFillTheServersQueueOfNotifications() throws Exception {
		CountDownLatch end = new CountDownLatch(1);
		try (ListenerFixture fixture = new ListenerFixture(this.database)) {
			WakeupListener wakeups = fixture.wakeups();
			CountDownLatch begun = new CountDownLatch(1);
			var container = fixture.container("slow", ListenerFixture.routes((message) -> {
				begun.countDown();
				end.await(30, TimeUnit.SECONDS);
			}), (created) -> created.setWakeupListener(wakeups));
			container.start();
			await().until(() -> wakeups.isListening("slow"));
			fixture.send("slow", "type", "payload");
			assertThat(begun.await(10, TimeUnit.SECONDS)).isTrue();
			notifyAtLength(400);
			// The server cleans up when somebody notifies.
			await().untilAsserted(() -> {
				notifyAtLength(8);
				assertThat(this.database.value(Double.class, "select pg_notification_queue_usage() * " + QUEUE_PAGES))
					.isLessThan(30);
			});
			assertThat(this.database.values(String.class,
					"select state || coalesce(' xmin ' || backend_xmin, '') || coalesce(' xid ' || backend_xid, '')"
							+ " from pg_stat_activity where (query ilike 'listen %' or query = 'show transaction_read_only') and datname = current_database()"))
				.isEqualTo(List.of("idle"));
			end.countDown();
		}
		finally {
			end.countDown();
		}
	}

	/**
	 * Almost a page each.
	 */
	private void notifyAtLength(int count) throws SQLException {
		try (Connection connection = this.database.connect(); Statement statement = connection.createStatement()) {
			for (int i = 0; i < count; i++) {
				statement.execute("select pg_notify('pgque_slow', repeat('x', 7900))");
			}
		}
	}

}
