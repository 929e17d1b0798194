package io.pgque.core;

import java.util.function.BiConsumer;

import org.jspecify.annotations.Nullable;

/**
 * Observes sends, and may add headers to what is sent. What it throws is the caller's
 * failure, so it should not throw.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface SendObserver {

	/**
	 * Observes nothing.
	 */
	SendObserver NONE = (queue, type, headers) -> Send.NONE;

	/**
	 * Called before a message, or a batch of messages, is written.
	 * @param queue the queue name
	 * @param type the event type, {@code null} for a batch of several
	 * @param headers takes names and values of headers to be added to each message; what
	 * it is given is dropped where messages have no room for headers
	 * @return is told how it ends
	 */
	Send begin(String queue, @Nullable String type, BiConsumer<String, String> headers);

	/**
	 * A send under way.
	 */
	interface Send {

		/**
		 * Is told nothing.
		 */
		Send NONE = new Send() {

			@Override
			public void sent(@Nullable Long messageId) {
			}

			@Override
			public void failed(Throwable failure) {
			}

		};

		/**
		 * The message was written, or is going to be before the transaction commits.
		 * @param messageId its id; {@code null} for a batch, and when it is not known yet
		 */
		void sent(@Nullable Long messageId);

		/**
		 * The message was not written.
		 * @param failure why
		 */
		void failed(Throwable failure);

	}

}
