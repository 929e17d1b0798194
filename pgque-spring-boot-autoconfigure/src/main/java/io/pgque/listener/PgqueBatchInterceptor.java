package io.pgque.listener;

import java.util.List;

import io.pgque.support.ReceivedMessage;

/**
 * Is called around each call of a listener that takes several messages, as
 * {@link PgqueMessageInterceptor} is for others. What {@link #before} or {@link #success}
 * throws is treated as if the listener had thrown it.
 *
 * @since 0.1.0
 */
public interface PgqueBatchInterceptor {

	/**
	 * The listener is about to be called.
	 * @param messages the messages, at least one
	 */
	default void before(List<? extends ReceivedMessage> messages) {
	}

	/**
	 * The listener has returned.
	 * @param messages the messages
	 */
	default void success(List<? extends ReceivedMessage> messages) {
	}

	/**
	 * The listener has thrown, or an interceptor has.
	 * @param messages the messages
	 * @param failure what was thrown
	 */
	default void failure(List<? extends ReceivedMessage> messages, Throwable failure) {
	}

	/**
	 * The call is over, however it ended.
	 * @param messages the messages
	 */
	default void after(List<? extends ReceivedMessage> messages) {
	}

}
