package io.pgque.listener;

import io.pgque.support.ReceivedMessage;

/**
 * Is called around each call of a handler that takes one message. Several are called in
 * their order, and on the way back in reverse; {@link #failure} and {@link #after} only
 * if {@link #before} was called and returned. All calls are on the thread of the handler.
 *
 * <p>
 * Implementations must be thread-safe. What {@link #before} or {@link #success} throws is
 * a failure of the message, as if the handler had thrown it; what the others throw is
 * logged.
 *
 * @since 0.1.0
 * @see PgqueBatchInterceptor
 */
public interface PgqueMessageInterceptor {

	/**
	 * The handler is about to be called.
	 * @param message the message
	 */
	default void before(ReceivedMessage message) {
	}

	/**
	 * The handler has returned.
	 * @param message the message
	 */
	default void success(ReceivedMessage message) {
	}

	/**
	 * The handler has thrown, or an interceptor has. The error handler is asked
	 * afterwards.
	 * @param message the message
	 * @param failure what was thrown
	 */
	default void failure(ReceivedMessage message, Throwable failure) {
	}

	/**
	 * The call is over, however it ended.
	 * @param message the message
	 */
	default void after(ReceivedMessage message) {
	}

}
