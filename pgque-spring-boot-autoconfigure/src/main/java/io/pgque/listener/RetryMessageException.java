package io.pgque.listener;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Thrown by a handler to have the message delivered again after a delay of its own
 * choice. It counts as a failed attempt.
 *
 * @since 0.1.0
 */
public class RetryMessageException extends RuntimeException {

	private static final long serialVersionUID = 1L;

	private final Duration delay;

	/**
	 * Ask for another delivery.
	 * @param delay the time until then, to the millisecond
	 */
	public RetryMessageException(Duration delay) {
		this(delay, "Retry in " + delay, null);
	}

	/**
	 * Ask for another delivery.
	 * @param delay the time until then, to the millisecond
	 * @param message why
	 * @param cause what went wrong
	 */
	public RetryMessageException(Duration delay, String message, @Nullable Throwable cause) {
		super(message, cause);
		Assert.isTrue(!delay.isNegative(), () -> "delay must not be negative: " + delay);
		this.delay = delay;
	}

	/**
	 * Return the time until the next delivery.
	 * @return the delay
	 */
	public Duration getDelay() {
		return this.delay;
	}

}
