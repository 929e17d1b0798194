package io.pgque.listener;

import java.time.Duration;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

/**
 * Through which a handler tells what is done, in a container with {@link AckMode#MANUAL}.
 * It counts while the handler runs: what is not acknowledged when the batch ends comes
 * again with everything behind it, after a pause and not counted as failed.
 *
 * <p>
 * Nothing is written here. The container settles all outcomes of a batch in one
 * statement, when the batch ends.
 *
 * @since 0.1.0
 */
public interface Acknowledgment {

	/**
	 * Acknowledge everything that was handed over of the batch so far and has no other
	 * outcome, the current message included.
	 * @throws IllegalStateException when the handler has returned already
	 */
	void acknowledge();

	/**
	 * Have one message delivered again later, which counts as a failed attempt: after the
	 * {@code max_retries} of its queue it becomes a dead letter.
	 * @param message the current message, or one that was handed over before it and not
	 * acknowledged
	 * @param delay the time until then, to the millisecond
	 * @param reason why, kept with a dead letter
	 * @throws IllegalStateException when the handler has returned already
	 * @throws IllegalArgumentException when the message can't have this outcome any more,
	 * or the delay is negative
	 */
	void nack(PgqueMessage message, Duration delay, @Nullable String reason);

}
