package io.pgque.listener;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

import io.pgque.core.PgqueMessage;

/**
 * Knows which handlers of a container are running, and when the last one was.
 */
final class HandlingLog implements HandlerScope {

	private final HandlerScope delegate;

	private final ContainerEvents events;

	private final Map<Thread, Handling> running = new ConcurrentHashMap<>();

	private final AtomicBoolean idle = new AtomicBoolean();

	private volatile long lastActive = System.nanoTime();

	HandlingLog(HandlerScope delegate, ContainerEvents events) {
		this.delegate = delegate;
		this.events = events;
	}

	@Override
	public void run(PgqueMessage message, Call handler) throws Exception {
		if (this.idle.compareAndSet(true, false)) {
			this.events.noLongerIdle(idleTime());
		}
		Thread thread = Thread.currentThread();
		this.running.put(thread, new Handling(message.id(), thread, System.nanoTime(), new AtomicBoolean()));
		try {
			this.delegate.run(message, handler);
		}
		finally {
			this.running.remove(thread);
			this.lastActive = System.nanoTime();
		}
	}

	Collection<Handling> running() {
		return List.copyOf(this.running.values());
	}

	/**
	 * Return how long no handler has been running.
	 */
	Duration idleTime() {
		return this.running.isEmpty() ? Duration.ofNanos(System.nanoTime() - this.lastActive) : Duration.ZERO;
	}

	/**
	 * Note that idleness was told, so that its end is.
	 */
	void toldIdle() {
		this.idle.set(true);
	}

	/**
	 * Count from now on.
	 */
	void active() {
		this.lastActive = System.nanoTime();
	}

	/**
	 * A handler that is running.
	 *
	 * @param messageId the message, or the first of those that it was given
	 * @param thread the thread that it runs on
	 * @param since when it was called, by {@link System#nanoTime()}
	 * @param reported whether it was reported
	 */
	record Handling(long messageId, Thread thread, long since, AtomicBoolean reported) {

		Duration time() {
			return Duration.ofNanos(System.nanoTime() - this.since);
		}

	}

}
