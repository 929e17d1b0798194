package io.pgque.support;

import java.time.Duration;
import java.util.HashSet;
import java.util.Set;

import org.springframework.util.Assert;

/**
 * Tells which failures are worth a stack trace in the log: the first of its kind, and
 * another when a while has passed. So something that fails and works in turn doesn't fill
 * the log. Used by one thread.
 *
 * @since 0.2.0
 */
public final class TraceLimit {

	private final long period;

	private final Set<Class<?>> traced = new HashSet<>();

	private long begin;

	/**
	 * Create a limit.
	 * @param period how long a kind of failure gets no second stack trace
	 */
	public TraceLimit(Duration period) {
		Assert.isTrue(!period.isNegative(), () -> "period must not be negative: " + period);
		this.period = period.toNanos();
	}

	/**
	 * Return whether a failure is worth a stack trace, and take it that it is printed
	 * then.
	 * @param failure the failure
	 * @return {@code false} when one of the same class was printed a short time ago
	 */
	public boolean isDue(Throwable failure) {
		long now = System.nanoTime();
		if (this.traced.isEmpty() || now - this.begin >= this.period) {
			this.traced.clear();
			this.begin = now;
		}
		return this.traced.add(failure.getClass());
	}

}
