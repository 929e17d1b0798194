package io.pgque.client;

import java.time.Duration;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

/**
 * The failure of one event of a batch.
 *
 * @param eventId the event id
 * @param delay how long to wait before the event comes again, to the millisecond; counts
 * for nothing when {@code dead}
 * @param reason why it failed, kept with a dead letter
 * @param dead whether the event becomes a dead letter at once, whatever retries are left
 * @since 0.1.0
 */
public record Nack(long eventId, Duration delay, @Nullable String reason, boolean dead) {

	/**
	 * Creates a nack.
	 */
	public Nack {
		Objects.requireNonNull(delay, "delay must not be null");
	}

	/**
	 * Let the event come again, unless its queue allows no further retry: then it becomes
	 * a dead letter.
	 * @param eventId the event id
	 * @param delay how long to wait
	 * @param reason why it failed
	 * @return the nack
	 */
	public static Nack retry(long eventId, Duration delay, @Nullable String reason) {
		return new Nack(eventId, delay, reason, false);
	}

	/**
	 * Make the event a dead letter at once.
	 * @param eventId the event id
	 * @param reason why
	 * @return the nack
	 */
	public static Nack dead(long eventId, @Nullable String reason) {
		return new Nack(eventId, Duration.ZERO, reason, true);
	}

}
