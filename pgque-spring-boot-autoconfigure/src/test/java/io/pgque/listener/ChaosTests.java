package io.pgque.listener;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;

import io.pgque.annotation.PgqueListener;
import io.pgque.boot.PgqueAutoConfiguration;
import io.pgque.boot.PgqueListenerAutoConfiguration;
import io.pgque.boot.PgqueSchemaAutoConfiguration;
import io.pgque.boot.PgqueTickerAutoConfiguration;
import io.pgque.client.PgqueClient;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.core.PgqueMessage;
import io.pgque.core.PgqueOperations;
import io.pgque.event.ListenerContainerEvent;
import io.pgque.event.ListenerContainerFailingEvent;
import io.pgque.event.ListenerContainerRecoveredEvent;
import io.pgque.testsupport.TcpProxy;
import io.pgque.ticker.PgqueTicker;
import io.pgque.ticker.TickerSettings;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.context.event.EventListener;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.util.FileSystemUtils;

import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * An application as Spring Boot sets it up sends and receives while its server, or the
 * way to it, fails in all the ways that servers do. A short form of it runs in the build,
 * the long one with {@code -Dpgque.soak=true}, which the Maven profile {@code soak} sets.
 */
class ChaosTests {

	private static final Log logger = LogFactory.getLog(ChaosTests.class);

	private static final boolean SOAK = Boolean.getBoolean("pgque.soak");

	private static final Duration STOPPED = SOAK ? Duration.ofSeconds(60) : Duration.ofSeconds(3);

	private static final Duration READ_ONLY = SOAK ? Duration.ofSeconds(30) : Duration.ofSeconds(3);

	private static final Duration TERMINATED = SOAK ? Duration.ofSeconds(20) : Duration.ofSeconds(3);

	private static final Duration TERMINATED_EACH = SOAK ? Duration.ofSeconds(1) : Duration.ofMillis(200);

	private static final Duration SWALLOWED = SOAK ? Duration.ofSeconds(30) : Duration.ofSeconds(2);

	/**
	 * Ends within each outage.
	 */
	private static final Duration LEASE = SOAK ? Duration.ofSeconds(15) : Duration.ofSeconds(2);

	private static final Duration RESUMES_WITHIN = Duration.ofSeconds(10);

	/**
	 * Where the pool has to find out first which of its connections are of no use.
	 */
	private static final Duration POOL_RESUMES_WITHIN = Duration.ofSeconds(20);

	/**
	 * A share of one processor. The short form has little time in which to average, and
	 * runs on small machines.
	 */
	private static final double NEAR_IDLE = SOAK ? 0.05 : 0.1;

	/**
	 * Processor time of what happens first, such as loading classes, and is paid once.
	 */
	private static final double FIRST_MILLIS = SOAK ? 200 : 500;

	private static final String QUEUE = "orders";

	private static final String CONTAINER = "orders.billing";

	@TempDir
	private static Path folder;

	private static EmbeddedPostgres server;

	private static boolean stopped;

	private static int port;

	private ApplicationContextRunner runner;

	@BeforeAll
	static void startFirst() throws IOException {
		startServer();
		port = server.getPort();
	}

	@AfterAll
	static void stopLast() throws IOException {
		server.close();
	}

	@BeforeEach
	void setUp() throws IOException {
		if (stopped) {
			// A test has failed before it did so itself.
			startServer();
		}
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
					DataSourceTransactionManagerAutoConfiguration.class, TransactionAutoConfiguration.class,
					PgqueAutoConfiguration.class, PgqueSchemaAutoConfiguration.class,
					PgqueTickerAutoConfiguration.class, PgqueListenerAutoConfiguration.class))
			.withPropertyValues("spring.datasource.url=" + url(port), "spring.datasource.username=postgres",
					"pgque.listener.lease-duration=" + LEASE.toSeconds() + "s",
					// Before that, who waits for a connection doesn't know that it fails.
					"spring.datasource.hikari.connection-timeout=" + (SOAK ? 30_000 : 1000))
			.withBean(Billing.class);
	}

	private static void startServer() throws IOException {
		EmbeddedPostgres.Builder builder = server(folder);
		server = ((port != 0) ? builder.setPort(port) : builder).start();
		stopped = false;
	}

	private static void stopServer() throws IOException {
		stopped = true;
		server.close();
	}

	private static EmbeddedPostgres.Builder server(Path folder) {
		return EmbeddedPostgres.builder()
			.setDataDirectory(folder)
			.setCleanDataDirectory(false)
			.setServerConfig("fsync", "off");
	}

	private static String url(int port) {
		return "jdbc:postgresql://localhost:" + port + "/postgres";
	}

	/**
	 * In the short form, notice sooner that a connection is silent.
	 */
	private ApplicationContextRunner listeningThrough(TcpProxy proxy) {
		if (SOAK) {
			return this.runner;
		}
		PGSimpleDataSource dataSource = direct(proxy.port());
		dataSource.setSocketTimeout(1);
		return this.runner.withBean(WakeupListener.class,
				() -> new WakeupListener(dataSource, Duration.ofMillis(500), Duration.ofSeconds(1)));
	}

	private static PGSimpleDataSource direct() {
		return direct(port);
	}

	private static PGSimpleDataSource direct(int port) {
		PGSimpleDataSource dataSource = new PGSimpleDataSource();
		dataSource.setUrl(url(port));
		dataSource.setUser("postgres");
		return dataSource;
	}

	private static void execute(String... statements) throws SQLException {
		try (Connection connection = direct().getConnection(); Statement statement = connection.createStatement()) {
			for (String sql : statements) {
				statement.execute(sql);
			}
		}
	}

	@Test
	void serverIsStopped() {
		this.runner.run((context) -> {
			try (ChaosRun run = run(context)) {
				run.begin();
				stopServer();
				hold(STOPPED);
				assertFailing(context, run);
				assertThat(context.getBean(Billing.class).health()).hasSize(1);
				startServer();
				assertResumed("stopped", RESUMES_WITHIN, context, run);
				assertThat(run.warnings())
					.allSatisfy((activity, lines) -> assertThat(lines.traces()).as(activity).isLessThanOrEqualTo(1));
				assertNothingLost(context, run);
			}
		});
	}

	@Test
	void applicationClosesQuicklyWithoutServer() {
		this.runner.run((context) -> {
			try (ChaosRun run = run(context)) {
				run.finish();
				stopServer();
				await().until(() -> container(context).isFailing());
				assertThat(time(context::close)).isLessThan(Duration.ofSeconds(5));
			}
			finally {
				startServer();
			}
		});
	}

	@Test
	void serverIsReadOnly() {
		this.runner.run((context) -> {
			try (ChaosRun run = run(context)) {
				run.begin();
				execute("alter system set default_transaction_read_only = on", "select pg_reload_conf()");
				hold(READ_ONLY);
				assertFailing(context, run);
				assertThat(context.getBean(Billing.class).health()).hasSize(1);
				execute("alter system reset default_transaction_read_only", "select pg_reload_conf()");
				assertResumed("read-only", RESUMES_WITHIN, context, run);
				assertThat(run.warnings())
					.allSatisfy((activity, lines) -> assertThat(lines.traces()).as(activity).isLessThanOrEqualTo(1));
				assertNothingLost(context, run);
			}
		});
	}

	@Test
	void everyBackendIsTerminatedAgainAndAgain() {
		this.runner.run((context) -> {
			try (ChaosRun run = run(context)) {
				run.begin();
				long rounds = TERMINATED.dividedBy(TERMINATED_EACH);
				for (int round = 0; round < rounds; round++) {
					execute("select pg_terminate_backend(pid) from pg_stat_activity"
							+ " where backend_type = 'client backend' and pid <> pg_backend_pid()");
					hold(TERMINATED_EACH);
				}
				logger.info("terminated: load %.3f, %d lines, %s".formatted(run.load(), run.lines(), run.warnings()));
				assertThat(run.load()).isLessThan(2 * NEAR_IDLE + FIRST_MILLIS / TERMINATED.toMillis());
				assertResumed("terminated", RESUMES_WITHIN, context, run);
				assertThat(run.warnings()).allSatisfy((activity, lines) -> {
					assertThat(lines.count()).as(activity).isLessThanOrEqualTo(2 * (int) rounds);
					assertThat(lines.traces()).as(activity).isLessThanOrEqualTo(3);
				});
				assertNothingLost(context, run);
			}
		});
	}

	/**
	 * Another instance ticks, so that only notifications tell of messages.
	 */
	@Test
	void packetsOfTheListeningConnectionAreDropped() throws Exception {
		PgqueTicker ticker = new PgqueTicker(direct(), TickerSettings.DEFAULTS);
		try (TcpProxy proxy = TcpProxy.to(port)) {
			listeningThrough(proxy)
				.withPropertyValues("pgque.listener.connection.url=" + url(proxy.port()), "pgque.ticker.mode=off",
						"pgque.listener.lease-duration=15s")
				.run((context) -> {
					ticker.start();
					WakeupListener wakeups = context.getBean(WakeupListener.class);
					try (ChaosRun run = run(context)) {
						await().until(() -> wakeups.isListening(QUEUE));
						run.begin();
						proxy.swallow();
						assertResumed("LISTEN dropped", RESUMES_WITHIN, context, run);
						await().until(() -> !wakeups.isListening(QUEUE));
						hold(SWALLOWED);
						logger.info("LISTEN dropped: load %.3f, %d lines, %s".formatted(run.load(), run.lines(),
								run.warnings()));
						proxy.restore();
						long restored = System.nanoTime();
						await().until(() -> wakeups.isListening(QUEUE));
						logger.info("LISTEN again after " + millisSince(restored) + " ms");
						assertThat(context.getBean(Billing.class).events)
							.noneMatch(ListenerContainerFailingEvent.class::isInstance);
						assertThat(run.warnings()).allSatisfy(
								(activity, lines) -> assertThat(lines.traces()).as(activity).isLessThanOrEqualTo(1));
						assertNothingLost(context, run);
					}
				});
		}
		finally {
			ticker.stop();
		}
	}

	/**
	 * What is on its way is lost for good, and so are the connections; the settings say
	 * when that is noticed. Those of the sender are the application's.
	 */
	@Test
	void packetsOfAllConnectionsAreDropped() throws IOException {
		try (TcpProxy proxy = TcpProxy.to(port)) {
			listeningThrough(proxy)
				.withPropertyValues("spring.datasource.url=" + url(proxy.port()) + "?socketTimeout=8",
						"spring.datasource.hikari.connection-timeout=" + (SOAK ? 5000 : 1000),
						"spring.datasource.hikari.validation-timeout=1000",
						"spring.datasource.hikari.maximum-pool-size=4",
						"pgque.listener.statement-timeout=" + (SOAK ? "5s" : "1s"),
						"pgque.ticker.statement-timeout=" + (SOAK ? "5s" : "1s"))
				.run((context) -> {
					try (ChaosRun run = run(context)) {
						run.begin();
						proxy.swallow();
						hold(SWALLOWED);
						await().until(() -> container(context).isFailing());
						assertFailing(context, run);
						proxy.restore();
						assertResumed("all dropped", POOL_RESUMES_WITHIN, context, run);
						assertNothingLost(context, run);
					}
				});
		}
	}

	/**
	 * The old server lives on and takes no writes, so that connections to it are of no
	 * use any more, but stay open.
	 */
	@Test
	void serverIsReplacedByAnother(@TempDir Path other) throws IOException {
		try (TcpProxy proxy = TcpProxy.to(port)) {
			this.runner.withPropertyValues("spring.datasource.url=" + url(proxy.port())).run((context) -> {
				try (ChaosRun run = run(context, proxy.port())) {
					execute("alter system set default_transaction_read_only = on");
					stopServer();
					FileSystemUtils.copyRecursively(folder, other);
					run.begin();
					startServer();
					Files.writeString(other.resolve("postgresql.auto.conf"), "");
					try (EmbeddedPostgres replacement = server(other).start()) {
						hold(READ_ONLY);
						assertFailing(context, run);
						proxy.redirect(replacement.getPort());
						assertResumed("replaced", POOL_RESUMES_WITHIN, context, run);
						await().until(() -> wakeups(replacement) == 1);
						assertNothingLost(context, run);
					}
				}
				finally {
					execute("alter system reset default_transaction_read_only", "select pg_reload_conf()");
				}
			});
		}
	}

	private static int wakeups(EmbeddedPostgres server) {
		return new JdbcTemplate(server.getPostgresDatabase()).queryForObject(
				"select count(*)::int from pg_stat_activity where application_name = 'pgque-wakeup'", Integer.class);
	}

	/**
	 * Let messages come until all is warm, and then on and on.
	 */
	private static ChaosRun run(ApplicationContext context) {
		return run(context, port);
	}

	private static ChaosRun run(ApplicationContext context, int port) {
		Billing billing = context.getBean(Billing.class);
		ChaosRun run = new ChaosRun(QUEUE, context.getBean(PgqueOperations.class), new PgqueClient(direct(port)),
				billing.handled);
		await().until(() -> billing.handled.size() > 30);
		await().until(() -> context.getBean(WakeupListener.class).isListening(QUEUE));
		return run;
	}

	private static void hold(Duration time) {
		long end = System.nanoTime() + time.toNanos();
		while (System.nanoTime() < end) {
			LockSupport.parkNanos(end - System.nanoTime());
		}
	}

	private static PgqueMessageListenerContainer container(ApplicationContext context) {
		return context.getBean(PgqueListenerEndpointRegistry.class).getListenerContainer(CONTAINER);
	}

	/**
	 * The fault is still there: container and events say so, which costs little.
	 */
	private static void assertFailing(ApplicationContext context, ChaosRun run) {
		Duration time = run.time();
		double load = run.load();
		Map<String, ChaosRun.Lines> warnings = run.warnings();
		logger.info("At the end of %s: load %.3f, %d lines, %s".formatted(time, load, run.lines(), warnings));
		assertThat(container(context).isRunning()).isTrue();
		assertThat(container(context).isFailing()).isTrue();
		Billing billing = context.getBean(Billing.class);
		// Published a moment after that.
		await()
			.untilAsserted(() -> assertThat(billing.health()).last().isInstanceOf(ListenerContainerFailingEvent.class));
		assertThat(load).isLessThan(NEAR_IDLE + FIRST_MILLIS / time.toMillis());
		assertThat(warnings).isNotEmpty()
			.allSatisfy(
					(activity, lines) -> assertThat(lines.count()).as(activity).isLessThanOrEqualTo(attempts(time)));
	}

	/**
	 * After a few attempts no back-off is shorter than that of the heartbeat, which is in
	 * a hurry to keep its leases.
	 */
	private static int attempts(Duration time) {
		Duration hurry = LEASE.dividedBy(3);
		Duration backOff = (hurry.toSeconds() < 2) ? hurry : Duration.ofSeconds(2);
		return 5 + (int) time.dividedBy(backOff);
	}

	private static void assertResumed(String fault, Duration within, ApplicationContext context, ChaosRun run) {
		long end = System.nanoTime();
		String marker = run.mark();
		Billing billing = context.getBean(Billing.class);
		await().atMost(within.multipliedBy(2)).until(() -> billing.handled.contains(marker));
		long resumed = millisSince(end);
		logger.info(fault + ": resumed after " + resumed + " ms");
		assertThat(resumed).as(fault).isLessThan(within.toMillis());
		await().until(() -> !container(context).isFailing());
		await().untilAsserted(() -> {
			List<ListenerContainerEvent> events = billing.health();
			for (int i = 0; i < events.size(); i++) {
				assertThat(events.get(i)).isInstanceOf(
						(i % 2 == 0) ? ListenerContainerFailingEvent.class : ListenerContainerRecoveredEvent.class);
			}
			assertThat(events.size() % 2).as("%s", events).isZero();
		});
	}

	private static long millisSince(long time) {
		return Duration.ofNanos(System.nanoTime() - time).toMillis();
	}

	/**
	 * Everything was handled in its order, and again only what was open at a failure.
	 */
	private static void assertNothingLost(ApplicationContext context, ChaosRun run) throws InterruptedException {
		List<String> sent = run.finish();
		await().untilAsserted(() -> assertThat(run.handled()).containsAll(sent));
		List<Long> ids = new ArrayList<>(context.getBean(Billing.class).ids);
		long repeats = ids.size() - ids.stream().distinct().count();
		long back = 0;
		for (int i = 1; i < ids.size(); i++) {
			back += (ids.get(i) <= ids.get(i - 1)) ? 1 : 0;
		}
		ListenerCounters counters = container(context).getCounters();
		logger.info(sent.size() + " sent, " + ids.size() + " handled, " + repeats + " of them again, " + counters);
		assertThat(back).as("times that it went on with what was open")
			.isLessThanOrEqualTo(counters.failures() + counters.staleSettles());
		assertThat(counters.retried()).isZero();
		assertThat(counters.deadLettered()).isZero();
	}

	/**
	 * What the application does with messages, and learns about its container.
	 */
	static class Billing {

		private final Queue<String> handled = new ConcurrentLinkedQueue<>();

		private final Queue<Long> ids = new ConcurrentLinkedQueue<>();

		private final List<ListenerContainerEvent> events = new CopyOnWriteArrayList<>();

		@PgqueListener(queue = QUEUE, consumer = "billing")
		void on(PgqueMessage message) {
			this.handled.add(message.payload());
			this.ids.add(message.id());
		}

		@EventListener
		void on(ListenerContainerEvent event) {
			this.events.add(event);
		}

		private List<ListenerContainerEvent> health() {
			return this.events.stream()
				.filter((event) -> event instanceof ListenerContainerFailingEvent
						|| event instanceof ListenerContainerRecoveredEvent)
				.toList();
		}

	}

}
