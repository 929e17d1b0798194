package io.pgque.listener;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

import org.junit.jupiter.api.Test;

import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link LoopControl}.
 */
class LoopControlTests {

	private static final Duration HOUR = Duration.ofHours(1);

	private final LoopControl control = new LoopControl(false);

	@Test
	void wakeupBetweenLookingAndWaitingIsNotLost() {
		long seen = this.control.wakeups();
		this.control.wake();
		assertThat(time(() -> this.control.awaitWakeup(seen, HOUR))).isLessThan(Duration.ofSeconds(1));
	}

	@Test
	void manyWakeupsAreOne() {
		this.control.wake();
		this.control.wake();
		long seen = this.control.wakeups();
		assertThat(time(() -> this.control.awaitWakeup(seen, Duration.ofMillis(50))))
			.isGreaterThanOrEqualTo(Duration.ofMillis(50));
	}

	@Test
	void tickIsTakenByWhoWaits() throws Exception {
		this.control.setTicks(true);
		Runnable handBack = () -> {
		};
		assertThat(this.control.offerTick(handBack)).as("busy").isFalse();
		Thread waiting = new Thread(() -> this.control.awaitWakeup(this.control.wakeups(), HOUR));
		waiting.start();
		await().until(() -> this.control.offerTick(handBack));
		assertThat(this.control.offerTick(handBack)).as("covered by the one before").isTrue();
		waiting.join();
		assertThat(this.control.takeTick()).isSameAs(handBack);
		assertThat(this.control.takeTick()).isNull();
		assertThat(this.control.offerTick(handBack)).as("busy again").isFalse();
	}

	@Test
	void whoCannotTickOrIsToHaltTakesNoTick() throws Exception {
		AtomicBoolean turn = new AtomicBoolean();
		this.control.setTurn(turn::get);
		Thread waiting = new Thread(() -> this.control.awaitWakeup(0, HOUR));
		waiting.start();
		await().until(() -> waiting.getState() == Thread.State.TIMED_WAITING);
		Runnable handBack = () -> {
		};
		turn.set(true);
		assertThat(this.control.offerTick(handBack)).isFalse();
		this.control.setTicks(true);
		turn.set(false);
		assertThat(this.control.offerTick(handBack)).as("stands by").isFalse();
		this.control.requestStop();
		turn.set(true);
		assertThat(this.control.offerTick(handBack)).isFalse();
		waiting.join();
	}

	@Test
	void pauseIsNotEndedByWakeups() {
		this.control.wake();
		assertThat(time(() -> this.control.awaitPause(Duration.ofMillis(50))))
			.isGreaterThanOrEqualTo(Duration.ofMillis(50));
	}

	@Test
	void requestsEndEveryWait() {
		this.control.requestPause(true);
		assertThat(time(() -> this.control.awaitPause(HOUR))).isLessThan(Duration.ofSeconds(1));
		assertThat(this.control.beginHandling()).isFalse();
		this.control.requestStop();
		assertThat(time(this.control::awaitResume)).isLessThan(Duration.ofSeconds(1));
		assertThat(time(() -> this.control.awaitWakeup(0, HOUR))).isLessThan(Duration.ofSeconds(1));
	}

	@Test
	void interruptionOfAHandlerDoesNotReachTheNextActivity() throws Exception {
		this.control.bind(Thread.currentThread());
		assertThat(this.control.beginHandling()).isTrue();
		this.control.requestStop();
		this.control.interruptIfStuck(HOUR);
		assertThat(Thread.currentThread().isInterrupted()).isFalse();
		this.control.interruptIfStuck(Duration.ZERO);
		assertThat(Thread.currentThread().isInterrupted()).isTrue();
		assertThat(this.control.isHandlerInterrupted()).isTrue();
		this.control.begin(LoopControl.Activity.IDLE);
		assertThat(Thread.currentThread().isInterrupted()).isFalse();
		this.control.begin(LoopControl.Activity.SETTLING);
		this.control.interruptIfStuck(HOUR);
		assertThat(Thread.currentThread().isInterrupted()).isFalse();
		this.control.bind(null);
		this.control.interruptIfStuck(Duration.ZERO);
		assertThat(Thread.currentThread().isInterrupted()).isFalse();
	}

	@Test
	void waitForTheDatabaseIsInterruptedEarly() throws Exception {
		AtomicBoolean interrupted = new AtomicBoolean();
		CountDownLatch waiting = new CountDownLatch(1);
		Thread thread = new Thread(() -> {
			this.control.bind(Thread.currentThread());
			this.control.begin(LoopControl.Activity.RECEIVING);
			waiting.countDown();
			try {
				new CountDownLatch(1).await(1, TimeUnit.HOURS);
			}
			catch (InterruptedException ex) {
				interrupted.set(true);
			}
		});
		thread.start();
		waiting.await();
		this.control.requestStop();
		await().until(() -> {
			this.control.interruptIfStuck(HOUR);
			return interrupted.get();
		});
		thread.join();
	}

	@Test
	void somebodyElsesInterruptionEndsNoWait() {
		Thread.currentThread().interrupt();
		assertThat(time(() -> this.control.awaitPause(Duration.ofMillis(50))))
			.isGreaterThanOrEqualTo(Duration.ofMillis(50));
		assertThat(Thread.interrupted()).isFalse();
	}

}
