package io.pgque.listener;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

/**
 * Handles messages, one at a time, and answers them.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public non-sealed interface PgqueReplyingMessageListener extends GenericPgqueListener {

	/**
	 * Handle a message. Whatever is thrown makes it a failed message.
	 * @param message the message
	 * @param acknowledgment tells what is done, in a container with
	 * {@link AckMode#MANUAL}, until the method returns
	 * @return the reply, sent when the message is settled as done; {@code null} for none
	 * @throws Exception when the message could not be handled
	 */
	@Nullable PgqueReply onMessage(PgqueMessage message, Acknowledgment acknowledgment) throws Exception;

}
