package io.pgque.boot;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

import javax.sql.DataSource;

import io.pgque.annotation.PgqueListener;
import io.pgque.core.PgqueTemplate;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.core.task.VirtualThreadTaskExecutor;
import org.springframework.jdbc.core.JdbcOperations;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for applications that run on virtual threads, with many more handlers than
 * connections. Virtual threads come with Java 21.
 */
@PgqueDatabase
@EnabledForJreRange(min = JRE.JAVA_21, disabledReason = "There are no virtual threads before Java 21")
class VirtualThreadTests {

	private static final int CONCURRENCY = 64;

	private static final int CONNECTIONS = 4;

	private final ApplicationContextRunner runner;

	@TempDir
	private Path folder;

	VirtualThreadTests(TestDatabase database) {
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
					DataSourceTransactionManagerAutoConfiguration.class, TransactionAutoConfiguration.class,
					PgqueAutoConfiguration.class, PgqueSchemaAutoConfiguration.class,
					PgqueTickerAutoConfiguration.class, PgqueListenerAutoConfiguration.class))
			.withPropertyValues(database.springProperties())
			.withPropertyValues("spring.datasource.hikari.maximum-pool-size=" + CONNECTIONS, "pgque.schema.mode=none",
					"spring.threads.virtual.enabled=true", "pgque.listener.concurrency=" + CONCURRENCY,
					"pgque.listener.partitions=" + CONCURRENCY);
	}

	@ParameterizedTest
	@ValueSource(strings = { "exclusive", "cooperative", "partitioned" })
	void manyHandlersShareFewConnectionsAndPinNoThread(String mode) {
		this.runner.withBean(Orders.class)
			.withPropertyValues("queue=virtual_" + mode, "pgque.listener.mode=" + mode)
			.run((context) -> {
				Orders orders = context.getBean(Orders.class);
				Runnable round = () -> {
					int expected = orders.handled.size() + CONCURRENCY;
					context.getBean(TransactionTemplate.class)
						.executeWithoutResult(
								(status) -> send(context.getBean(PgqueTemplate.class), "virtual_" + mode));
					Awaitility.await()
						.atMost(Duration.ofSeconds(30))
						.pollInterval(Duration.ofMillis(5))
						.until(() -> orders.handled.size() == expected);
				};
				// What is loaded once is loaded now.
				round.run();
				if (mode.equals("exclusive")) {
					orders.meeting = new CyclicBarrier(CONCURRENCY);
				}
				List<RecordedEvent> pinned = record(() -> {
					for (int i = 0; i < 10; i++) {
						round.run();
					}
				});
				assertThat(orders.failures).isEmpty();
				assertThat(orders.onPlatformThreads).hasValue(0);
				assertThat(pinned).noneMatch(VirtualThreadTests::isOfThisLibrary);
			});
	}

	/**
	 * Without this, the tests above would prove nothing.
	 */
	@Test
	void threadThatIsPinnedIsRecorded() throws IOException {
		List<RecordedEvent> pinned = record(() -> {
			Thread thread = new VirtualThreadTaskExecutor().getVirtualThreadFactory().newThread(new Pinning());
			thread.start();
			Awaitility.await().until(() -> !thread.isAlive());
		});
		assertThat(pinned).anyMatch(VirtualThreadTests::isOfThisLibrary);
	}

	private static void send(PgqueTemplate template, String queue) {
		for (int i = 0; i < CONCURRENCY; i++) {
			String key = "key " + i;
			template.send(queue, (spec) -> spec.payload(key).key(key));
		}
	}

	/**
	 * Record which virtual threads kept their carriers while something ran.
	 */
	private List<RecordedEvent> record(Runnable task) throws IOException {
		Path file = this.folder.resolve("pinned.jfr");
		try (Recording recording = new Recording()) {
			recording.enable("jdk.VirtualThreadPinned").withThreshold(Duration.ZERO).withStackTrace();
			recording.start();
			task.run();
			recording.stop();
			recording.dump(file);
		}
		return RecordingFile.readAllEvents(file);
	}

	private static boolean isOfThisLibrary(RecordedEvent event) {
		return event.getStackTrace() != null && event.getStackTrace()
			.getFrames()
			.stream()
			.anyMatch((frame) -> frame.getMethod().getType().getName().startsWith("io.pgque."));
	}

	static class Orders {

		private final JdbcOperations jdbc;

		private final Queue<String> handled = new ConcurrentLinkedQueue<>();

		private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

		private final AtomicInteger onPlatformThreads = new AtomicInteger();

		/**
		 * Where all handlers have to be at the same time.
		 */
		private volatile CyclicBarrier meeting;

		Orders(DataSource dataSource) {
			this.jdbc = new JdbcTemplate(dataSource);
		}

		@PgqueListener(queue = "${queue}", consumer = "billing")
		void on(String order) {
			try {
				if (!"VirtualThreads".equals(Thread.currentThread().getThreadGroup().getName())) {
					this.onPlatformThreads.incrementAndGet();
				}
				CyclicBarrier meeting = this.meeting;
				if (meeting != null) {
					meeting.await(10, TimeUnit.SECONDS);
				}
				this.jdbc.execute("select pg_sleep(0.002)");
			}
			catch (Exception ex) {
				this.failures.add(ex);
			}
			this.handled.add(order);
		}

	}

	/**
	 * Waits while its class is initialized, which is called from native code: no virtual
	 * thread can leave its carrier there.
	 */
	static final class Pinning implements Runnable {

		@Override
		public void run() {
			assertThat(Native.LOADED).isTrue();
		}

		private static final class Native {

			static final Boolean LOADED = load();

			private static Boolean load() {
				LockSupport.parkNanos(1_000_000);
				return true;
			}

		}

	}

}
