package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

import io.pgque.core.PgqueMessage;
import io.pgque.event.ListenerContainerPausedEvent;
import io.pgque.event.ListenerContainerResumedEvent;
import io.pgque.event.ListenerContainerStartedEvent;
import io.pgque.event.ListenerContainerStoppedEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/**
 * Tests for starting, stopping and pausing containers.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class ContainerLifecycleTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	ContainerLifecycleTests(TestDatabase database) {
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
	void idleContainerStopsAtOnceAndLeavesNoThread() {
		this.fixture.properties.setPollInterval(Duration.ofHours(1));
		AtomicInteger calls = new AtomicInteger();
		var container = this.fixture.container("idle", (message) -> calls.incrementAndGet());
		container.start();
		await().until(() -> !this.fixture.events(ListenerContainerStartedEvent.class).isEmpty());
		assertThat(container.isRunning()).isTrue();
		assertThat(time(container::stop)).isLessThan(Duration.ofMillis(500));
		assertThat(container.isRunning()).isFalse();
		assertThat(threads("pgque-idle.consumer")).isEmpty();
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerStoppedEvent.class))
			.extracting(ListenerContainerStoppedEvent::getReason)
			.containsExactly(ListenerContainerStoppedEvent.Reason.REQUESTED));
		this.fixture.send("idle", 1);
		assertThat(this.fixture.isDrained("idle")).isFalse();
		container.start();
		await().until(() -> calls.get() == 1);
	}

	@Test
	void startAndStopMayBeRepeated() {
		var container = this.fixture.container("repeated", (message) -> {
		});
		container.stop();
		container.start();
		container.start();
		await().until(() -> this.fixture.events(ListenerContainerStartedEvent.class).size() == 1);
		container.stop();
		container.stop();
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerStoppedEvent.class)).hasSize(1));
	}

	@Test
	void runningHandlerEndsAndIsSettledBeforeTheStop() throws Exception {
		CountDownLatch entered = new CountDownLatch(1);
		CountDownLatch mayLeave = new CountDownLatch(1);
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("slow_stop", (message) -> {
			entered.countDown();
			mayLeave.await();
			handled.add(message.payload());
		});
		this.fixture.send("slow_stop", 3);
		container.start();
		assertThat(entered.await(10, TimeUnit.SECONDS)).isTrue();
		CountDownLatch stopped = new CountDownLatch(1);
		container.stop(stopped::countDown);
		assertThat(stopped.await(100, TimeUnit.MILLISECONDS)).isFalse();
		assertThat(container.isRunning()).isTrue();
		mayLeave.countDown();
		assertThat(stopped.await(10, TimeUnit.SECONDS)).isTrue();
		assertThat(container.isRunning()).isFalse();
		assertThat(handled).containsExactly("1");
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isOne());
		container.start();
		await().until(() -> this.fixture.isDrained("slow_stop"));
		assertThat(handled).containsExactly("1", "2", "3");
	}

	@Test
	void handlerBeyondTheTimeoutIsInterruptedAndThatIsNoFailure(CapturedOutput output) throws Exception {
		this.fixture.properties.setShutdownTimeout(Duration.ofMillis(200));
		AtomicBoolean hang = new AtomicBoolean(true);
		this.fixture.errorHandler = (failure, message, context) -> {
			throw new AssertionError("nothing to decide");
		};
		CountDownLatch entered = new CountDownLatch(1);
		List<PgqueMessage> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("hanging", (message) -> {
			if ("2".equals(message.payload()) && hang.get()) {
				entered.countDown();
				new CountDownLatch(1).await();
			}
			handled.add(message);
		});
		this.fixture.send("hanging", 3);
		container.start();
		assertThat(entered.await(10, TimeUnit.SECONDS)).isTrue();
		assertThat(time(container::stop)).isBetween(Duration.ofMillis(200), Duration.ofMillis(1200));
		assertThat(container.isRunning()).isFalse();
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isOne());
		assertThat(this.fixture.pendingRetries("hanging")).isZero();
		await().untilAsserted(() -> assertThat(output).contains("was interrupted. The message comes again"));
		hang.set(false);
		container.start();
		await().until(() -> this.fixture.isDrained("hanging"));
		assertThat(handled).extracting(PgqueMessage::payload).containsExactly("1", "2", "3");
		assertThat(handled).extracting(PgqueMessage::retryCount).containsOnlyNulls();
	}

	@Test
	void stopEndsAlthoughAHandlerIgnoresItsInterruption(CapturedOutput output) throws Exception {
		this.fixture.properties.setShutdownTimeout(Duration.ofMillis(100));
		CountDownLatch entered = new CountDownLatch(1);
		CountDownLatch mayLeave = new CountDownLatch(1);
		var container = this.fixture.container("stubborn", (message) -> {
			entered.countDown();
			while (mayLeave.getCount() > 0) {
				try {
					mayLeave.await();
				}
				catch (InterruptedException ex) {
					// stubborn
				}
			}
		});
		this.fixture.send("stubborn", 1);
		container.start();
		assertThat(entered.await(10, TimeUnit.SECONDS)).isTrue();
		assertThat(time(container::stop)).isLessThan(Duration.ofMillis(1500));
		assertThat(container.isRunning()).isTrue();
		await().untilAsserted(() -> assertThat(output).contains("has not ended within the shutdown timeout"));
		assertThatIllegalStateException().isThrownBy(container::start);
		// A second stop has no patience left.
		assertThat(time(container::stop)).isLessThan(Duration.ofMillis(200));
		mayLeave.countDown();
		await().until(() -> !container.isRunning());
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isOne());
		assertThat(this.fixture.isDrained("stubborn")).isTrue();
	}

	@Test
	void handlerMayStopItsOwnContainer() {
		AtomicReference<PgqueMessageListenerContainer> self = new AtomicReference<>();
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("suicide", (message) -> {
			handled.add(message.payload());
			self.get().stop();
		});
		self.set(container);
		this.fixture.send("suicide", 3);
		container.start();
		await().until(() -> !container.isRunning());
		assertThat(handled).containsExactly("1");
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isOne());
	}

	@Test
	void pauseSettlesWhatIsDoneAndResumeGoesOn() throws Exception {
		CountDownLatch entered = new CountDownLatch(1);
		CountDownLatch mayLeave = new CountDownLatch(1);
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("paused", (message) -> {
			entered.countDown();
			mayLeave.await();
			handled.add(message.payload());
		});
		this.fixture.send("paused", 3);
		container.start();
		assertThat(entered.await(10, TimeUnit.SECONDS)).isTrue();
		container.pause();
		assertThat(container.isPaused()).isFalse();
		mayLeave.countDown();
		await().until(container::isPaused);
		await().until(() -> this.fixture.events(ListenerContainerPausedEvent.class).size() == 1);
		assertThat(container.isRunning()).isTrue();
		assertThat(handled).containsExactly("1");
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isOne());
		container.resume();
		await().until(() -> this.fixture.isDrained("paused"));
		assertThat(container.isPaused()).isFalse();
		assertThat(handled).containsExactly("1", "2", "3");
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerResumedEvent.class)).hasSize(1));
	}

	@Test
	void pausedContainerStopsAtOnceAndStartsPaused() {
		AtomicInteger calls = new AtomicInteger();
		var container = this.fixture.container("start_paused", (message) -> calls.incrementAndGet());
		container.pause();
		assertThat(container.isPaused()).isFalse();
		this.fixture.send("start_paused", 1);
		container.start();
		await().until(container::isPaused);
		assertThat(time(container::stop)).isLessThan(Duration.ofMillis(500));
		assertThat(container.isPaused()).isFalse();
		container.start();
		await().until(container::isPaused);
		assertThat(calls).hasValue(0);
		container.resume();
		await().until(() -> calls.get() == 1);
	}

	@Test
	void failureBackOffIsEndedByStop() {
		var container = this.fixture.container("dropped", (message) -> {
		});
		this.fixture.send("dropped", 1);
		container.start();
		await().until(() -> container.getCounters().handled() == 1);
		this.fixture.client.dropQueue("dropped", true);
		await().until(() -> container.getCounters().failures() >= 4);
		assertThat(time(container::stop)).isLessThan(Duration.ofMillis(500));
	}

	@Test
	void queueThatWasDroppedIsMadeAnewByARestart() {
		var container = this.fixture.container("made_anew", (message) -> {
		});
		container.start();
		container.stop();
		this.fixture.client.dropQueue("made_anew", true);
		container.start();
		await().until(() -> this.fixture.client.consumers()
			.stream()
			.anyMatch((consumer) -> consumer.queue().equals("made_anew")));
		this.fixture.send("made_anew", 1);
		await().until(() -> container.getCounters().handled() == 1);
	}

	@Test
	void containerThatWasNotSubscribedDoesItItself() {
		AtomicInteger calls = new AtomicInteger();
		DefaultPgqueMessageListenerContainer container = new DefaultPgqueMessageListenerContainer(
				new ListenerIdentity("late", "late", "late"), this.fixture.client, this.fixture.admin,
				ListenerFixture.routes((message) -> calls.incrementAndGet()), this.fixture.errorHandler,
				this.fixture.properties);
		container.start();
		try {
			await().until(() -> this.fixture.client.consumers()
				.stream()
				.anyMatch((consumer) -> consumer.consumer().equals("late")));
			this.fixture.send("late", 1);
			await().until(() -> calls.get() == 1);
		}
		finally {
			container.stop();
		}
	}

	@Test
	void messagesBetweenSubscriptionAndStartAreReceived() {
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("before_start", (message) -> handled.add(message.payload()));
		this.fixture.send("before_start", 2);
		container.start();
		await().until(() -> handled.size() == 2);
	}

	@Test
	void twoContainersWithTheSameCursorLoseNothing() throws Exception {
		// Who settles second is told that the batch is gone, and nothing is settled
		// twice.
		List<Long> handled = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("shared", (message) -> handled.add(message.id()));
		try (ListenerFixture other = new ListenerFixture(this.database)) {
			var second = other.container("shared", (message) -> handled.add(message.id()));
			first.start();
			second.start();
			List<Long> sent = new CopyOnWriteArrayList<>();
			for (int i = 0; i < 20; i++) {
				sent.addAll(this.fixture.send("shared", 10));
			}
			await().until(() -> this.fixture.isDrained("shared"));
			await().untilAsserted(() -> assertThat(handled).containsAll(sent));
			await().untilAsserted(() -> assertThat(first.getCounters().handled() + second.getCounters().handled())
				.isEqualTo(sent.size()));
		}
	}

	private static List<Thread> threads(String name) {
		return Thread.getAllStackTraces().keySet().stream().filter((thread) -> thread.getName().equals(name)).toList();
	}

}
