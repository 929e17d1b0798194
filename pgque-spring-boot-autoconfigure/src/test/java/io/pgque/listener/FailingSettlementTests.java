package io.pgque.listener;

import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.event.ListenerContainerFailingEvent;
import io.pgque.event.ListenerContainerRecoveredEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.datasource.DelegatingDataSource;

import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * What it costs when nothing can be settled, or every handler fails.
 */
@PgqueDatabase
class FailingSettlementTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	FailingSettlementTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database);
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void attemptsFollowTheBackOffAndTheStopIsQuick() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		List<String> calls = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("hot", (message) -> {
			calls.add(message.payload());
			throw new IllegalStateException("no");
		});
		this.database.execute("alter table pgque.retry_queue add constraint refused check (false) not valid");
		try {
			this.fixture.send("hot", 1);
			container.start();
			await().until(() -> container.getCounters().failures() >= 1);
			long cpu = cpuMillis();
			// 250 + 500 + 1000 + 2000 ms, and the fifth comes 4 s later.
			await().during(Duration.ofSeconds(3)).until(() -> container.getCounters().failures() <= 5);
			assertThat(cpuMillis() - cpu).as("CPU milliseconds of the container's thread in three seconds")
				.isLessThan(300);
			assertThat(container.getCounters().failures()).isBetween(3L, 5L);
			assertThat(calls).hasSizeLessThanOrEqualTo(5);
			assertThat(time(container::stop)).isLessThan(Duration.ofSeconds(1));
			assertThat(this.fixture.pendingRetries("hot")).isZero();
		}
		finally {
			this.database.execute("alter table pgque.retry_queue drop constraint refused");
		}
		container.start();
		await().until(() -> this.fixture.pendingRetries("hot") == 1);
	}

	@Test
	void isFailingWhileASettlementIsTriedAgain() throws Exception {
		AtomicBoolean outOfReach = new AtomicBoolean();
		try (ListenerFixture own = new ListenerFixture(this.database, new DelegatingDataSource(this.database.pool(2)) {

			@Override
			public Connection getConnection() throws SQLException {
				if (outOfReach.get()) {
					throw new SQLTransientConnectionException("out of reach");
				}
				return super.getConnection();
			}

		})) {
			// No heartbeat meanwhile, which would fail too.
			own.properties.setLeaseDuration(Duration.ofHours(1));
			List<String> calls = new CopyOnWriteArrayList<>();
			var container = own.container("unsettled", (message) -> {
				calls.add(message.payload());
				outOfReach.set(true);
			});
			own.send("unsettled", 1);
			container.start();
			await().until(container::isFailing);
			assertThat(own.events(ListenerContainerRecoveredEvent.class)).isEmpty();
			outOfReach.set(false);
			await().until(() -> own.isDrained("unsettled"));
			await().untilAsserted(() -> assertThat(own.events(ListenerContainerRecoveredEvent.class)).hasSize(1));
			assertThat(container.isFailing()).isFalse();
			assertThat(own.events(ListenerContainerFailingEvent.class)).hasSize(1);
			assertThat(calls).containsExactly("1");
		}
	}

	private static long cpuMillis() {
		return Thread.getAllStackTraces()
			.keySet()
			.stream()
			.filter((thread) -> thread.getName().equals("pgque-hot.consumer"))
			.mapToLong((thread) -> ManagementFactory.getThreadMXBean().getThreadCpuTime(thread.getId()) / 1_000_000)
			.sum();
	}

	@Test
	void failingHandlersLeaveNoConnectionBehind() throws Exception {
		HikariDataSource pool = this.database.pool(3);
		try (ListenerFixture small = new ListenerFixture(this.database, pool)) {
			small.properties.setFailureBrakeThreshold(0);
			var container = small.container("fifty", (message) -> {
				throw new IllegalStateException("no " + message.payload());
			});
			small.client.setQueueConfig("fifty", "max_retries", "0");
			small.send("fifty", 50);
			container.start();
			await().until(() -> this.fixture.deadLetters("fifty") == 50);
			container.stop();
			assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
			assertThat(pool.getHikariPoolMXBean().getIdleConnections())
				.isEqualTo(pool.getHikariPoolMXBean().getTotalConnections());
		}
	}

	@Test
	void ticksWithoutEventsKeepNobody() {
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("empty_ticks", (message) -> handled.add(message.payload()));
		container.start();
		for (int i = 0; i < 2; i++) {
			this.database.query("select pgque.force_tick('empty_ticks'), pgque.ticker('empty_ticks')");
		}
		this.fixture.send("empty_ticks", 1);
		await().until(() -> handled.equals(List.of("1")));
		await().until(() -> this.fixture.isDrained("empty_ticks"));
	}

}
