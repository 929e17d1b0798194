package io.pgque.listener;

import java.time.Duration;
import java.util.List;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

/**
 * Messages that are handed to a batch listener together, and where it tells the outcome
 * of each. An outcome that is told again replaces the one before. They count while the
 * listener runs; whatever it throws afterwards is only about messages without an outcome.
 *
 * @since 0.1.0
 */
public interface PgqueBatch extends Acknowledgment {

	/**
	 * Return the messages.
	 * @return the messages in the order of their ids, unmodifiable; at least one
	 */
	List<PgqueMessage> messages();

	/**
	 * Tell that a message is done.
	 * @param message the message
	 */
	void done(PgqueMessage message);

	/**
	 * Have a message delivered again later, which counts as a failed attempt.
	 * @param message the message
	 * @param delay the time until then, to the millisecond
	 * @param reason why, kept with a dead letter
	 */
	void retry(PgqueMessage message, Duration delay, @Nullable String reason);

	/**
	 * Make a message a dead letter, whatever retries are left.
	 * @param message the message
	 * @param reason why
	 */
	void deadLetter(PgqueMessage message, String reason);

	/**
	 * Pass a message over: it is settled, and counted as skipped.
	 * @param message the message
	 */
	void skip(PgqueMessage message);

	/**
	 * Leave a message to the error handler, as if a listener of single messages had
	 * thrown.
	 * @param message the message
	 * @param failure what went wrong
	 */
	void failed(PgqueMessage message, Exception failure);

	/**
	 * Tell that all messages without an outcome are done, and so is what was handed over
	 * of the same batch before and has none. When the listener throws afterwards, its own
	 * messages without an outcome failed nevertheless.
	 */
	@Override
	void acknowledge();

	@Override
	default void nack(PgqueMessage message, Duration delay, @Nullable String reason) {
		retry(message, delay, reason);
	}

}
