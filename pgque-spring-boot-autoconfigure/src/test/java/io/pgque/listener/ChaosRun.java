package io.pgque.listener;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.pgque.PgqueException;
import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueOperations;
import org.slf4j.LoggerFactory;

import org.springframework.dao.DataAccessException;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * What goes on in a {@link ChaosTests test of faults}: messages are sent through the
 * application all the time, and it is noted what is handled and logged, and what our
 * threads cost.
 */
final class ChaosRun implements AutoCloseable {

	private static final Duration SEND_EVERY = Duration.ofMillis(20);

	private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

	private final String queue;

	private final PgqueOperations application;

	/**
	 * Leads to the database on a way of its own.
	 */
	private final PgqueClient other;

	private final Queue<String> handled;

	private final List<String> sent = new CopyOnWriteArrayList<>();

	private final Thread sender = new Thread(this::send, "chaos-sender");

	private final Log log = new Log();

	private volatile boolean sending = true;

	private int markers;

	private Map<Long, Long> cpuBefore = Map.of();

	private long begin;

	private int linesBefore;

	ChaosRun(String queue, PgqueOperations application, PgqueClient other, Queue<String> handled) {
		this.queue = queue;
		this.application = application;
		this.other = other;
		this.handled = handled;
		this.log.start();
		logger().addAppender(this.log);
		this.sender.setDaemon(true);
		this.sender.start();
	}

	private static Logger logger() {
		return (Logger) LoggerFactory.getLogger("io.pgque");
	}

	/**
	 * Each payload again until it is accepted: a commit whose answer was lost sends it
	 * twice.
	 */
	private void send() {
		for (int number = 0; this.sending; number++) {
			String payload = "order " + number;
			while (!isSent(payload) && this.sending) {
				LockSupport.parkNanos(SEND_EVERY.toNanos());
			}
			LockSupport.parkNanos(SEND_EVERY.toNanos());
		}
	}

	private boolean isSent(String payload) {
		try {
			this.application.send(this.queue, payload);
			this.sent.add(payload);
			return true;
		}
		catch (RuntimeException ex) {
			// What the fault does to senders is theirs to know; they try again.
			return false;
		}
	}

	/**
	 * A fault begins.
	 */
	void begin() {
		this.linesBefore = this.log.lines.size();
		this.cpuBefore = cpu();
		this.begin = System.nanoTime();
	}

	/**
	 * Return how long ago the fault began.
	 */
	Duration time() {
		return Duration.ofNanos(System.nanoTime() - this.begin);
	}

	/**
	 * Return what our threads have cost since the fault began, as a share of one
	 * processor.
	 */
	double load() {
		long wall = System.nanoTime() - this.begin;
		long cpu = 0;
		for (Map.Entry<Long, Long> thread : cpu().entrySet()) {
			cpu += thread.getValue() - this.cpuBefore.getOrDefault(thread.getKey(), 0L);
		}
		return (double) cpu / wall;
	}

	private static Map<Long, Long> cpu() {
		Map<Long, Long> cpu = new HashMap<>();
		for (Thread thread : Thread.getAllStackTraces().keySet()) {
			if (thread.getName().startsWith("pgque-")) {
				cpu.put(thread.getId(), Math.max(0, THREADS.getThreadCpuTime(thread.getId())));
			}
		}
		return cpu;
	}

	/**
	 * Return what was logged at level WARN since the fault began, by thread, since each
	 * has something of its own to do, and by its first words.
	 */
	Map<String, Lines> warnings() {
		Map<String, Lines> warnings = new TreeMap<>();
		this.log.lines.stream()
			.skip(this.linesBefore)
			.filter((line) -> line.getLevel().isGreaterOrEqual(Level.WARN))
			.forEach((line) -> warnings.merge(line.getThreadName() + ": " + activity(line.getFormattedMessage()),
					new Lines(1, (line.getThrowableProxy() != null) ? 1 : 0), Lines::plus));
		return warnings;
	}

	private static String activity(String message) {
		String[] words = message.split(" ", 4);
		return String.join(" ", List.of(words).subList(0, Math.min(3, words.length)));
	}

	/**
	 * Return how many lines were logged since the fault began, whatever their level.
	 */
	int lines() {
		return this.log.lines.size() - this.linesBefore;
	}

	/**
	 * Send a message beside the application, trying until it is accepted, and return its
	 * payload.
	 */
	String mark() {
		String marker = "marker " + ++this.markers;
		ListenerFixture.await()
			.pollInterval(Duration.ofMillis(20))
			.ignoreExceptionsMatching(this::isTransient)
			.until(() -> {
				this.other.send(this.queue, "order", marker, EventExtras.NONE);
				return true;
			});
		return marker;
	}

	private boolean isTransient(Throwable failure) {
		return failure instanceof DataAccessException || failure instanceof PgqueException;
	}

	/**
	 * Send no more.
	 * @return the payloads that were sent
	 */
	List<String> finish() throws InterruptedException {
		this.sending = false;
		this.sender.join(TimeUnit.SECONDS.toMillis(30));
		assertThat(this.sender.isAlive()).as("a send is still waiting").isFalse();
		return this.sent;
	}

	/**
	 * Return what was handled.
	 */
	List<String> handled() {
		return List.copyOf(this.handled);
	}

	@Override
	public void close() {
		this.sending = false;
		logger().detachAppender(this.log);
		this.log.stop();
	}

	/**
	 * How many lines there were.
	 *
	 * @param count all of them
	 * @param traces those with a stack trace
	 */
	record Lines(int count, int traces) {

		Lines plus(Lines other) {
			return new Lines(this.count + other.count, this.traces + other.traces);
		}

	}

	/**
	 * Keeps what is logged.
	 */
	private static final class Log extends AppenderBase<ILoggingEvent> {

		private final Queue<ILoggingEvent> lines = new ConcurrentLinkedQueue<>();

		@Override
		protected void append(ILoggingEvent line) {
			this.lines.add(line);
		}

	}

}
