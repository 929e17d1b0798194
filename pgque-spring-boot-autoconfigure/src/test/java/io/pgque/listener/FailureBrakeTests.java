package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import io.pgque.core.PgqueMessage;
import io.pgque.event.BatchAbortedEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for containers that pause when everything fails.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class FailureBrakeTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	FailureBrakeTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database);
		this.fixture.properties.setFailureBrakePause(Duration.ofMillis(20));
		this.fixture.properties.setFailureBrakeMaxPause(Duration.ofMillis(200));
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	/**
	 * Ten minutes with pauses up to one minute, in 1/300 of the time.
	 */
	@ParameterizedTest
	@ValueSource(booleans = { false, true })
	void outageOfADependencyCostsLittleAndNoRetries(boolean batch, CapturedOutput output) throws Exception {
		int messages = 5000;
		String queue = "outage_" + batch;
		AtomicBoolean down = new AtomicBoolean(true);
		AtomicInteger calls = new AtomicInteger();
		AtomicInteger handled = new AtomicInteger();
		var container = batch ? this.fixture.batchContainer(queue, (several) -> {
			call(down, calls);
			handled.addAndGet(several.messages().size());
		}) : this.fixture.container(queue, (message) -> {
			call(down, calls);
			handled.incrementAndGet();
		});
		this.fixture.send(queue, messages);
		double activeBefore = activeMillis();
		long begin = System.nanoTime();
		container.start();
		await().until(() -> {
			this.fixture.client.moveDueRetries();
			this.fixture.tick(queue);
			return System.nanoTime() - begin > Duration.ofSeconds(2).toNanos();
		});
		down.set(false);
		int callsInOutage = calls.get();
		await().until(() -> {
			this.fixture.retryNow(queue);
			return handled.get() == messages;
		});
		// 10 until it brakes, then some 15 pauses; lists come once more for what retries.
		assertThat(callsInOutage).isBetween(11, 45);
		assertThat(this.fixture.deadLetters(queue)).isZero();
		await().untilAsserted(() -> assertThat(container.getCounters().batchesAborted()).isBetween(3L, 30L));
		await().untilAsserted(
				() -> assertThat(container.getCounters().retried()).isLessThanOrEqualTo(batch ? 3 * messages : 20));
		assertThat(activeMillis() - activeBefore).isLessThan(5000);
		await().untilAsserted(() -> assertThat(this.fixture.events(BatchAbortedEvent.class)).isNotEmpty());
		await().untilAsserted(
				() -> assertThat(output).contains("failures in a row").contains("can handle messages again, after"));
	}

	private static void call(AtomicBoolean down, AtomicInteger calls) {
		calls.incrementAndGet();
		if (down.get()) {
			throw new IllegalStateException("the payment service does not answer");
		}
	}

	/**
	 * How many milliseconds the sessions of the database have been active.
	 */
	private double activeMillis() {
		return this.database.value(Double.class,
				"select active_time from pg_stat_database where datname = current_database()");
	}

	@Test
	void redeliveriesThatFailAgainInARowAreNoReasonToPause() {
		this.fixture.properties.setFailureBrakeThreshold(3);
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ZERO);
		var container = this.fixture.container("declined", (message) -> {
			if (Integer.parseInt(message.payload()) % 2 == 0) {
				throw new IllegalStateException("declined");
			}
		});
		this.fixture.send("declined", 20);
		container.start();
		await().until(() -> this.fixture.pendingRetries("declined") == 10);
		this.fixture.retryNow("declined");
		await().untilAsserted(() -> assertThat(container.getCounters().retried()).isEqualTo(20));
		assertThat(container.getCounters().batchesAborted()).isZero();
	}

	@Test
	void whatIsDoneIsSettledAndPausesGrow() {
		List<String> handled = new CopyOnWriteArrayList<>();
		this.fixture.properties.setFailureBrakeThreshold(3);
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		AtomicBoolean down = new AtomicBoolean(true);
		var container = this.fixture.container("prefix", (message) -> {
			if (Integer.parseInt(message.payload()) > 2 && down.get()) {
				throw new IllegalStateException("down");
			}
			handled.add(message.payload());
		});
		this.fixture.send("prefix", 20);
		container.start();
		await().until(() -> this.fixture.events(BatchAbortedEvent.class).size() >= 8);
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(2));
		await().untilAsserted(
				() -> assertThat(this.fixture.events(BatchAbortedEvent.class)).extracting(BatchAbortedEvent::getPause)
					.startsWith(Duration.ofMillis(20), Duration.ofMillis(40), Duration.ofMillis(80),
							Duration.ofMillis(160), Duration.ofMillis(200), Duration.ofMillis(200)));
		// 3 and 4 before it brakes, then every third try of one message counts.
		await().untilAsserted(() -> assertThat(container.getCounters().retried()).isBetween(4L, 6L));
		down.set(false);
		await().until(() -> this.fixture.isDrained("prefix"));
		long retried = container.getCounters().retried();
		assertThat(handled).hasSize(20 - (int) retried);
		assertThat(handled).startsWith("1", "2").endsWith("19", "20");
	}

	@Test
	void successInBetweenBeginsAnewAndOtherOutcomesDoNotCount() {
		this.fixture.properties.setFailureBrakeThreshold(3);
		var container = this.fixture.container("between", (message) -> {
			int number = Integer.parseInt(message.payload());
			if (number > 12) {
				throw new RejectMessageException("never");
			}
			if (number % 3 != 0) {
				throw new IllegalStateException("down");
			}
		});
		this.fixture.errorHandler = new DefaultPgqueErrorHandler(
				new BackOffSettings(Duration.ofHours(1), 1, Duration.ofHours(1), Duration.ZERO));
		this.fixture.send("between", 20);
		container.start();
		await().until(() -> this.fixture.isDrained("between"));
		await().untilAsserted(
				() -> assertThat(container.getCounters())
					.extracting(ListenerCounters::handled, ListenerCounters::retried, ListenerCounters::deadLettered,
							ListenerCounters::batchesAborted)
					.containsExactly(4L, 8L, 8L, 0L));
	}

	@Test
	void messagesThatReallyFailDoNotKeepOthersWaitingForEver() {
		this.fixture.properties.setFailureBrakeThreshold(2);
		this.fixture.properties.setFailureBrakeMaxPause(Duration.ofMillis(20));
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("poison", (message) -> {
			handled.add(message.payload());
			if (Integer.parseInt(message.payload()) <= 4) {
				throw new IllegalStateException("poison");
			}
		});
		this.fixture.send("poison", 6);
		container.start();
		await().until(() -> this.fixture.isDrained("poison"));
		assertThat(handled).containsExactly("1", "2", "2", "2", "3", "3", "3", "4", "4", "4", "5", "6");
		await().untilAsserted(() -> assertThat(container.getCounters().retried()).isEqualTo(4));
	}

	@Test
	void thresholdOfZeroNeverBrakes() {
		this.fixture.properties.setFailureBrakeThreshold(0);
		var container = this.fixture.container("never", (message) -> {
			throw new IllegalStateException("down");
		});
		this.fixture.send("never", 100);
		container.start();
		await().until(() -> container.getCounters().retried() == 100);
		assertThat(container.getCounters().batchesAborted()).isZero();
	}

	@Test
	void lastAttemptDoesNotPromiseAnother(CapturedOutput output) {
		var container = this.fixture.container("last", (PgqueMessage message) -> {
			throw new IllegalStateException("declined");
		});
		this.fixture.client.setQueueConfig("last", "max_retries", "0");
		this.fixture.send("last", 1);
		container.start();
		await().until(() -> this.fixture.deadLetters("last") == 1);
		await().untilAsserted(() -> assertThat(output).contains("unless that was its last attempt")
			.contains("became a dead letter after attempt 1")
			.doesNotContain("retry in"));
	}

}
