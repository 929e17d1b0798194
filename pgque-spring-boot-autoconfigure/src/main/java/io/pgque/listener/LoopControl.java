package io.pgque.listener;

import java.time.Duration;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

import org.jspecify.annotations.Nullable;

/**
 * Through which a container and its loop's thread talk to each other: wake-ups, requests
 * to stop and to pause, and what the loop is in the middle of. The latter decides whether
 * the thread may be interrupted: a handler only beyond the shutdown timeout, a wait for
 * the database earlier.
 */
final class LoopControl {

	/**
	 * As far ahead as {@link System#nanoTime()} can be compared.
	 */
	private static final Duration FOREVER = Duration.ofDays(36500);

	private final ReentrantLock lock = new ReentrantLock();

	private final Condition changed = this.lock.newCondition();

	private long wakeups;

	private long turns;

	private volatile BooleanSupplier turn = () -> true;

	private boolean ticks;

	private boolean awaitingWork;

	private @Nullable Runnable offeredTick;

	private Activity activity = Activity.IDLE;

	private long activitySince = System.nanoTime();

	private @Nullable Thread thread;

	private volatile boolean stopping;

	private long stopRequestedAt;

	private volatile boolean pauseRequested;

	private boolean handlerInterrupted;

	LoopControl(boolean pauseRequested) {
		this.pauseRequested = pauseRequested;
	}

	/**
	 * Called by the loop at its start, and with {@code null} at its end: then nothing is
	 * interrupted any more.
	 */
	void bind(@Nullable Thread thread) {
		this.lock.lock();
		try {
			this.thread = thread;
		}
		finally {
			this.lock.unlock();
		}
	}

	void wake() {
		this.lock.lock();
		try {
			this.wakeups++;
			this.changed.signalAll();
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Wake the loop if it waits for its turn to receive.
	 */
	void wakeForTurn() {
		this.lock.lock();
		try {
			this.turns++;
			this.changed.signalAll();
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return how many times it might have become this loop's turn to receive. To be asked
	 * before looking whether it is, so that {@link #awaitTurn} misses none.
	 */
	long turns() {
		this.lock.lock();
		try {
			return this.turns;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Set whether the loop can tick: otherwise it takes no offer.
	 */
	void setTicks(boolean ticks) {
		this.lock.lock();
		try {
			this.ticks = ticks;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Offer the loop a tick. It takes it when it has nothing to do but to wait for one.
	 * @param handBack to be run if the tick is not taken after all
	 * @return whether it takes it
	 */
	boolean offerTick(Runnable handBack) {
		this.lock.lock();
		try {
			if (this.offeredTick != null) {
				// It has not begun yet, and will cover this commit too.
				return true;
			}
			if (!this.ticks || !this.awaitingWork || isHalting() || !this.turn.getAsBoolean()) {
				return false;
			}
			this.offeredTick = handBack;
			this.wakeups++;
			this.changed.signalAll();
			return true;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return what hands back the tick that the loop was offered, {@code null} when there
	 * is none. The caller ticks, or runs it.
	 */
	@Nullable Runnable takeTick() {
		this.lock.lock();
		try {
			Runnable handBack = this.offeredTick;
			this.offeredTick = null;
			return handBack;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Set what tells whether it is still this loop's turn: otherwise no further handler
	 * begins.
	 */
	void setTurn(BooleanSupplier turn) {
		this.turn = turn;
	}

	/**
	 * Return how many wake-ups there have been. To be asked before looking for messages,
	 * so that {@link #awaitWakeup} misses none that comes in between.
	 */
	long wakeups() {
		this.lock.lock();
		try {
			return this.wakeups;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Request a stop.
	 * @return the {@link System#nanoTime()} of the first request
	 */
	long requestStop() {
		this.lock.lock();
		try {
			if (!this.stopping) {
				this.stopping = true;
				this.stopRequestedAt = System.nanoTime();
			}
			this.changed.signalAll();
			return this.stopRequestedAt;
		}
		finally {
			this.lock.unlock();
		}
	}

	void requestPause(boolean pause) {
		this.lock.lock();
		try {
			this.pauseRequested = pause;
			this.changed.signalAll();
		}
		finally {
			this.lock.unlock();
		}
	}

	boolean isStopping() {
		return this.stopping;
	}

	boolean isPauseRequested() {
		return this.pauseRequested;
	}

	private boolean isHalting() {
		return this.stopping || this.pauseRequested;
	}

	/**
	 * Wait for a wake-up beyond the given number, for a request, or for the time to pass.
	 */
	void awaitWakeup(long seen, Duration timeout) {
		setAwaitingWork(true);
		try {
			await(timeout, seen);
		}
		finally {
			setAwaitingWork(false);
		}
	}

	private void setAwaitingWork(boolean awaitingWork) {
		this.lock.lock();
		try {
			this.awaitingWork = awaitingWork;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Wait until it may be this loop's turn, for a request, or for the time to pass.
	 */
	void awaitTurn(long seen, Duration timeout) {
		awaitWhile(() -> !isHalting() && this.turns == seen, timeout);
	}

	/**
	 * Wait for the time to pass, or for a request.
	 */
	void awaitPause(Duration timeout) {
		await(timeout, null);
	}

	private void await(Duration timeout, @Nullable Long seen) {
		awaitWhile(() -> !isHalting() && (seen == null || this.wakeups == seen), timeout);
	}

	/**
	 * Wait until the pause ends or a stop is requested.
	 */
	void awaitResume() {
		awaitWhile(() -> this.pauseRequested && !this.stopping, FOREVER);
	}

	private void awaitWhile(BooleanSupplier condition, Duration timeout) {
		long deadline = System.nanoTime() + nanos(timeout);
		this.lock.lock();
		try {
			long left = nanos(timeout);
			while (left > 0 && condition.getAsBoolean()) {
				try {
					left = this.changed.awaitNanos(left);
				}
				catch (InterruptedException ex) {
					// This class alone interrupts the loop, and never while it waits
					// here: that was somebody else, and no reason to end.
					left = deadline - System.nanoTime();
				}
			}
		}
		finally {
			this.lock.unlock();
		}
	}

	private static long nanos(Duration duration) {
		// As far ahead as System.nanoTime() can be compared.
		return (duration.compareTo(Duration.ofDays(36500)) < 0) ? duration.toNanos() : Duration.ofDays(36500).toNanos();
	}

	/**
	 * Begin to handle a message.
	 * @return whether that is allowed; otherwise no further message is to be taken
	 */
	boolean beginHandling() {
		this.lock.lock();
		try {
			if (isHalting() || !this.turn.getAsBoolean()) {
				return false;
			}
			enter(Activity.HANDLING);
			return true;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return whether a further message may be taken, while others are being handled.
	 */
	boolean isHandlingAllowed() {
		return !isHalting() && this.turn.getAsBoolean();
	}

	/**
	 * Return whether a handler was interrupted by {@link #interruptIfStuck}.
	 */
	boolean isHandlerInterrupted() {
		this.lock.lock();
		try {
			return this.handlerInterrupted;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Tell what the loop does from now on. An interruption of what it did before is over.
	 */
	void begin(Activity activity) {
		this.lock.lock();
		try {
			enter(activity);
		}
		finally {
			this.lock.unlock();
		}
	}

	private void enter(Activity activity) {
		Thread.interrupted();
		this.activity = activity;
		this.activitySince = System.nanoTime();
	}

	/**
	 * Interrupt the loop when, since the stop was requested, what it does has taken
	 * longer than is granted to it.
	 * @param shutdownTimeout the time that is granted to handlers
	 */
	void interruptIfStuck(Duration shutdownTimeout) {
		this.lock.lock();
		try {
			if (this.thread == null || !this.stopping || this.activity == Activity.IDLE) {
				return;
			}
			long now = System.nanoTime();
			long sinceRequest = now - this.stopRequestedAt;
			// A handler's limit is the end of the timeout, other work's a time of its
			// own.
			long duration = (this.activity == Activity.HANDLING) ? sinceRequest
					: Math.min(sinceRequest, now - this.activitySince);
			if (duration >= nanos(this.activity.grace(shutdownTimeout))) {
				this.handlerInterrupted = this.handlerInterrupted || this.activity == Activity.HANDLING;
				this.thread.interrupt();
				// once: the next activity may be interrupted anew
				this.activity = Activity.IDLE;
			}
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * What a loop is in the middle of.
	 */
	enum Activity {

		/**
		 * Nothing that takes time.
		 */
		IDLE(Duration.ZERO),

		/**
		 * It asks the database for messages, and perhaps waits for a connection.
		 */
		RECEIVING(Duration.ofMillis(500)),

		/**
		 * It gives up what it held, so that others needn't wait for the time when they
		 * may take it.
		 */
		RELEASING(Duration.ofSeconds(1)),

		/**
		 * A handler runs.
		 */
		HANDLING(Duration.ZERO),

		/**
		 * It settles what is done. That is worth a longer wait: without it, handled
		 * messages come again.
		 */
		SETTLING(Duration.ofSeconds(5));

		private final Duration grace;

		Activity(Duration grace) {
			this.grace = grace;
		}

		Duration grace(Duration shutdownTimeout) {
			if (this == HANDLING || this.grace.compareTo(shutdownTimeout) > 0) {
				return shutdownTimeout;
			}
			return this.grace;
		}

	}

}
