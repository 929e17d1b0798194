package io.pgque.ticker;

import java.time.Duration;

/**
 * Something the ticker does from time to time.
 */
final class Duty {

	private final String name;

	private final long interval;

	private final Runnable action;

	private long due = System.nanoTime();

	Duty(String name, Duration interval, Runnable action) {
		this.name = name;
		this.interval = interval.toNanos();
		this.action = action;
	}

	/**
	 * Return what it does, as the object of a sentence such as "could not ...".
	 */
	String name() {
		return this.name;
	}

	long due() {
		return this.due;
	}

	void run() {
		this.action.run();
		// From the end: a slow database is not hurried.
		this.due = System.nanoTime() + this.interval;
	}

	void postpone(Duration delay) {
		this.due = System.nanoTime() + Math.max(this.interval, delay.toNanos());
	}

}
