package io.pgque.benchmarks;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import io.pgque.core.PgqueTemplate;
import org.postgresql.PGConnection;

import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * From the call of send to the entry of the handler, with default settings, against the
 * floor of the machine: a bare notification and three statements.
 */
final class LatencyBenchmark implements Benchmark {

	private static final String READY = "ready";

	private static final String END = "end";

	private final int seconds = Integer.getInteger("benchmarks.latency.seconds", 60);

	private final int idleSeconds = Integer.getInteger("benchmarks.latency.idle-seconds", 15);

	@Override
	public String name() {
		return "latency";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		double floor = floor(database).median();
		report.limit("a bare notification round trip and three statements, p50", floor, "ms", 1_000);
		sameApplication(database, report);
		otherProcess(database, report, floor);
	}

	private void sameApplication(Database database, Report report) {
		try (ConfigurableApplicationContext context = Application.start(database, List.of(Latencies.class))) {
			PgqueTemplate template = context.getBean(PgqueTemplate.class);
			Queue<Long> nanos = context.getBean(Latencies.class).nanos;
			sendAtRate(template, 100, 5);
			await(nanos, 500);
			nanos.clear();
			sendAtRate(template, 100, this.seconds);
			Percentiles steady = await(nanos, 100 * this.seconds);
			report.limit("one application, 100 events/s, p50", steady.median(), "ms", 2);
			report.limit("one application, 100 events/s, p99", steady.at(0.99), "ms", 10);

			TransactionTemplate transaction = new TransactionTemplate(
					context.getBean(PlatformTransactionManager.class));
			List<Long> late = new ArrayList<>();
			for (int i = 0; i < 5; i++) {
				nanos.clear();
				long[] done = new long[1];
				transaction.executeWithoutResult((status) -> {
					template.send("latency", Long.toString(0));
					LockSupport.parkNanos(3_000_000_000L);
					done[0] = System.nanoTime();
				});
				late.add((long) (await(nanos, 1).sorted()[0] * 1e6) - done[0]);
			}
			report.limit("event of a transaction open for 3 s, after its commit, max", Percentiles.ofNanos(late).at(1),
					"ms", 20);

			List<Long> first = new ArrayList<>();
			for (int i = 0; i < 20; i++) {
				nanos.clear();
				LockSupport.parkNanos(this.idleSeconds * 1_000_000_000L);
				template.send("latency", Long.toString(System.nanoTime()));
				first.add((long) (await(nanos, 1).sorted()[0] * 1e6));
			}
			report.limit("first event after " + this.idleSeconds + " idle seconds, median of 20",
					Percentiles.ofNanos(first).median(), "ms", 20);
		}
	}

	private void otherProcess(Database database, Report report, double floor) throws Exception {
		try (ConfigurableApplicationContext context = Application.start(database, List.of());
				Consumer consumer = Consumer.start(database)) {
			PgqueTemplate template = context.getBean(PgqueTemplate.class);
			sendAtRate(template, 100, 5);
			consumer.measure(template);
			sendAtRate(template, 100, this.seconds);
			Percentiles steady = consumer.measure(template);
			report.limit("two processes, 100 events/s, p50", steady.median(), "ms", 4);
			report.limit("two processes, 100 events/s, p99", steady.at(0.99), "ms", 20);
			sendAtRate(template, 1000, this.seconds);
			Percentiles busy = consumer.measure(template);
			report.limit("two processes, 1,000 events/s, p50", busy.median(), "ms", Math.max(8, 1.5 * floor));
		}
	}

	private static void sendAtRate(PgqueTemplate template, int perSecond, int seconds) {
		long interval = 1_000_000_000L / perSecond;
		long next = System.nanoTime();
		for (int i = 0; i < perSecond * seconds; i++) {
			for (long wait = next - System.nanoTime(); wait > 0; wait = next - System.nanoTime()) {
				LockSupport.parkNanos(wait);
			}
			template.send("latency", Long.toString(System.nanoTime()));
			next += interval;
		}
	}

	private static Percentiles await(Queue<Long> nanos, int count) {
		long end = System.nanoTime() + 30_000_000_000L;
		while (nanos.size() < count && System.nanoTime() < end) {
			LockSupport.parkNanos(200_000);
		}
		if (nanos.size() < count) {
			throw new IllegalStateException("Only " + nanos.size() + " of " + count + " messages arrived");
		}
		return Percentiles.ofNanos(nanos);
	}

	private Percentiles floor(Database database) throws SQLException {
		double[] millis = new double[1000];
		try (Connection sender = database.connect(); Connection receiver = database.connect()) {
			Database.execute(receiver, "listen floor");
			PGConnection notifications = receiver.unwrap(PGConnection.class);
			for (int i = 0; i < millis.length; i++) {
				long start = System.nanoTime();
				Database.execute(sender, "select 1");
				Database.execute(sender, "notify floor");
				while (notifications.getNotifications(1000).length == 0) {
					Thread.onSpinWait();
				}
				Database.execute(receiver, "select 1");
				Database.execute(receiver, "select 1");
				millis[i] = (System.nanoTime() - start) / 1e6;
			}
		}
		return Percentiles.ofMillis(millis);
	}

	/**
	 * A consumer in a process of its own.
	 */
	private record Consumer(Process process, BufferedReader output) implements AutoCloseable {

		static Consumer start(Database database) throws IOException {
			Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
					"-cp", classPath(), ConsumerProcess.class.getName(), database.url())
				.redirectError(ProcessBuilder.Redirect.INHERIT)
				.start();
			Consumer consumer = new Consumer(process,
					new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)));
			consumer.read(READY);
			return consumer;
		}

		/**
		 * Maven runs benchmarks in its own process, with a class loader of theirs.
		 */
		private static String classPath() {
			if (LatencyBenchmark.class.getClassLoader() instanceof URLClassLoader loader) {
				return Stream.of(loader.getURLs()).map(URL::getPath).collect(Collectors.joining(File.pathSeparator));
			}
			return System.getProperty("java.class.path");
		}

		/**
		 * Have the consumer tell how long the messages took that it has got.
		 */
		Percentiles measure(PgqueTemplate template) throws IOException {
			template.send("latency", END);
			return Percentiles.ofNanos(List.of(read("nanos").split(",")).stream().map(Long::valueOf).toList());
		}

		private String read(String begin) throws IOException {
			for (String line = this.output.readLine(); line != null; line = this.output.readLine()) {
				if (line.startsWith(begin)) {
					return line.substring(begin.length()).strip();
				}
			}
			throw new IOException("The consumer's process ended");
		}

		@Override
		public void close() {
			this.process.destroy();
		}

	}

}
