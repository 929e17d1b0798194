package io.pgque.listener;

import io.pgque.support.ReceivedMessage;

/**
 * Decides what becomes of a message whose handler failed. A bean of this type replaces
 * the {@link DefaultPgqueErrorHandler} of all containers whose listeners name no
 * {@code errorHandler}; of several, one has to be primary.
 *
 * <p>
 * Implementations are called on the thread of the container and must be thread-safe. What
 * they throw is logged, and the default decides instead.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface PgqueErrorHandler {

	/**
	 * Decide about a failed message.
	 * @param failure what the handler threw; an {@link Error} comes as the cause of a
	 * {@link PgqueListenerExecutionFailedException}
	 * @param message the message as it was received
	 * @param context where it failed
	 * @return what to do
	 */
	FailureAction handle(Exception failure, ReceivedMessage message, FailureContext context);

}
