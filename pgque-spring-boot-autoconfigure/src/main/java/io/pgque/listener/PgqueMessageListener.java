package io.pgque.listener;

import io.pgque.core.PgqueMessage;

/**
 * Handles messages, one at a time.
 *
 * @since 0.1.0
 * @see PgqueAcknowledgingMessageListener
 */
@FunctionalInterface
public non-sealed interface PgqueMessageListener extends GenericPgqueListener {

	/**
	 * Handle a message. Returning means that it is done; whatever is thrown makes it a
	 * failed message. No database connection is held and no transaction is open.
	 * @param message the message
	 * @throws Exception when the message could not be handled
	 */
	void onMessage(PgqueMessage message) throws Exception;

}
