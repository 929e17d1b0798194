package io.pgque.listener;

import java.time.Duration;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Looks after a container: reports handlers that run for too long, and tells when there
 * is nothing to handle. Runs on a thread of its own, only where one of them is wanted.
 */
final class ContainerWatch implements Runnable {

	private static final Log logger = LogFactory.getLog(ContainerWatch.class);

	private static final int LOOKS = 4;

	private static final Duration LONGEST_PAUSE = Duration.ofSeconds(1);

	private final ListenerIdentity identity;

	private final HandlingLog handlings;

	private final ContainerEvents events;

	private final @Nullable Duration maxHandlingTime;

	private final @Nullable Duration idleInterval;

	private final BooleanSupplier resting;

	private final HandOver handOver;

	private final ReentrantLock lock = new ReentrantLock();

	private final Condition changed = this.lock.newCondition();

	private boolean ended;

	private int idleEvents;

	/**
	 * Create a watch.
	 * @param resting whether the container doesn't receive at the moment
	 * @param handOver gives up what is held for a handler
	 */
	ContainerWatch(ContainerParts parts, HandlingLog handlings, BooleanSupplier resting, HandOver handOver) {
		this.identity = parts.identity();
		this.handlings = handlings;
		this.events = parts.events();
		this.maxHandlingTime = parts.properties().getMaxHandlingTime();
		this.idleInterval = parts.properties().getIdleEventInterval();
		this.resting = resting;
		this.handOver = handOver;
	}

	@Override
	public void run() {
		Duration pause = pause();
		while (await(pause)) {
			try {
				reportStuck();
				tellIdle();
			}
			catch (RuntimeException ex) {
				logger.warn("Looking after " + this.identity + " failed, which does no harm to it", ex);
			}
		}
	}

	private Duration pause() {
		Duration pause = LONGEST_PAUSE;
		for (Duration limit : new Duration[] { this.maxHandlingTime, this.idleInterval }) {
			if (limit != null && limit.dividedBy(LOOKS).compareTo(pause) < 0) {
				pause = limit.dividedBy(LOOKS);
			}
		}
		return pause;
	}

	/**
	 * @return whether to go on
	 */
	private boolean await(Duration time) {
		this.lock.lock();
		try {
			long left = time.toNanos();
			while (left > 0 && !this.ended) {
				left = this.changed.awaitNanos(left);
			}
			return !this.ended;
		}
		catch (InterruptedException ex) {
			logger.debug("Interrupted while waiting to look, which is no reason to end", ex);
			return true;
		}
		finally {
			this.lock.unlock();
		}
	}

	void end() {
		this.lock.lock();
		try {
			this.ended = true;
			this.changed.signalAll();
		}
		finally {
			this.lock.unlock();
		}
	}

	private void reportStuck() {
		if (this.maxHandlingTime == null) {
			return;
		}
		for (HandlingLog.Handling handling : this.handlings.running()) {
			Duration time = handling.time();
			if (time.compareTo(this.maxHandlingTime) >= 0 && handling.reported().compareAndSet(false, true)) {
				boolean handedOver = this.handOver.handOver(handling.thread());
				logger.warn("A handler of " + this.identity + " has been running for " + time.toMillis()
						+ " ms with message " + handling.messageId() + " on thread '" + handling.thread().getName()
						+ "', max-handling-time is " + this.maxHandlingTime.toMillis() + " ms"
						+ (handedOver ? ". What it holds is given up to other instances" : "") + ". It is at:"
						+ stack(handling.thread()));
				this.events.stuck(handling.messageId(), time, handling.thread().getName(), handedOver);
			}
		}
	}

	private static String stack(Thread thread) {
		StringBuilder stack = new StringBuilder();
		for (StackTraceElement element : thread.getStackTrace()) {
			stack.append("\n\tat ").append(element);
		}
		return stack.toString();
	}

	private void tellIdle() {
		if (this.idleInterval == null) {
			return;
		}
		if (this.resting.getAsBoolean()) {
			this.handlings.active();
		}
		Duration idle = this.handlings.idleTime();
		if (idle.compareTo(this.idleInterval) < 0) {
			this.idleEvents = 0;
		}
		else if (idle.compareTo(this.idleInterval.multipliedBy(this.idleEvents + 1L)) >= 0) {
			this.idleEvents++;
			this.handlings.toldIdle();
			this.events.idle(idle);
		}
	}

	/**
	 * Gives up what is held for a handler.
	 */
	@FunctionalInterface
	interface HandOver {

		/**
		 * Give it up, if that is wanted and can be done.
		 * @param thread the thread that the handler runs on
		 * @return whether it was given up
		 */
		boolean handOver(Thread thread);

	}

}
