package io.pgque.listener;

import io.pgque.core.PgqueMessage;

/**
 * Handles messages, one at a time, and tells itself which of them are done. For
 * containers with {@link AckMode#MANUAL}.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public non-sealed interface PgqueAcknowledgingMessageListener extends GenericPgqueListener {

	/**
	 * Handle a message. Whatever is thrown makes it a failed message, acknowledged or
	 * not.
	 * @param message the message
	 * @param acknowledgment tells what is done, until the method returns
	 * @throws Exception when the message could not be handled
	 */
	void onMessage(PgqueMessage message, Acknowledgment acknowledgment) throws Exception;

}
