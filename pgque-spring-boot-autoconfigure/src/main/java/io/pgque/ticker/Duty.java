package io.pgque.ticker;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/**
 * Something the ticker does from time to time: less often while it finds nothing to do.
 */
final class Duty {

	/**
	 * After how long without anything to do it is idle.
	 */
	private static final Duration IDLE_AFTER = Duration.ofSeconds(10);

	private final String name;

	private final long interval;

	private final int idleFactor;

	private final long idleAfter;

	private final BooleanSupplier action;

	private long lastBusy = System.nanoTime();

	private long due = System.nanoTime();

	Duty(String name, Duration interval, Runnable action) {
		this(name, interval, 1, () -> {
			action.run();
			return true;
		});
	}

	/**
	 * Create a duty.
	 * @param name what it does, as the object of a sentence such as "could not ..."
	 * @param interval the time from one end to the next begin
	 * @param idleFactor how many times longer that is while there is nothing to do
	 * @param action returns whether there was something to do
	 */
	Duty(String name, Duration interval, int idleFactor, BooleanSupplier action) {
		this(name, interval, idleFactor, IDLE_AFTER, action);
	}

	Duty(String name, Duration interval, int idleFactor, Duration idleAfter, BooleanSupplier action) {
		this.name = name;
		this.interval = interval.toNanos();
		this.idleFactor = idleFactor;
		this.idleAfter = idleAfter.toNanos();
		this.action = action;
	}

	String name() {
		return this.name;
	}

	long due() {
		return this.due;
	}

	void run() {
		boolean busy = this.action.getAsBoolean();
		// From the end: a slow database is not hurried.
		long now = System.nanoTime();
		this.lastBusy = busy ? now : this.lastBusy;
		boolean idle = now - this.lastBusy > this.idleAfter;
		this.due = now + (idle ? this.interval * this.idleFactor : this.interval);
	}

	/**
	 * Note that there is something to do, wherever that was seen.
	 */
	void wakeUp() {
		long now = System.nanoTime();
		this.lastBusy = now;
		if (this.due - now > this.interval) {
			this.due = now + this.interval;
		}
	}

	void postpone(Duration delay) {
		this.due = System.nanoTime() + Math.max(this.interval, delay.toNanos());
	}

}
