package io.pgque.listener;

import io.pgque.support.ReceivedMessage;

/**
 * Keeps messages from their handler. They count as processed: they are settled with their
 * batch, counted as skipped, and don't come again.
 *
 * <p>
 * Implementations must be thread-safe. What they throw is a failure of the message.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface PgqueMessageFilter {

	/**
	 * Tell whether the handler is to have a message.
	 * @param message the message
	 * @return {@code false} to pass it over
	 */
	boolean accept(ReceivedMessage message);

}
