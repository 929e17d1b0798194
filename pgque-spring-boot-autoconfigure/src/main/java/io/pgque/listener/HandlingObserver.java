package io.pgque.listener;

import java.util.List;

import io.pgque.support.ReceivedMessage;

/**
 * Observes how messages are handled: handlers, interceptors and error handlers run
 * inside. What it throws would be taken for a failure of the loop, so it must not throw.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface HandlingObserver {

	/**
	 * Observes nothing.
	 */
	HandlingObserver NONE = (listenerId, messages, purpose) -> Handling.NONE;

	/**
	 * Called on the handler's thread before messages are handled.
	 * @param listenerId the id of the listener
	 * @param messages one message, or those that are handled together; never empty
	 * @param purpose what is going to be done with them
	 * @return is told what comes of it, and closed on the same thread
	 */
	Handling begin(String listenerId, List<? extends ReceivedMessage> messages, Purpose purpose);

	/**
	 * What is done with messages.
	 */
	enum Purpose {

		/**
		 * They are handed to their handler; with a single message, its failure to the
		 * error handler too.
		 */
		HANDLE,

		/**
		 * The failure of one of several that were handled together is handed to the error
		 * handler.
		 */
		JUDGE

	}

	/**
	 * Messages being handled.
	 */
	interface Handling extends AutoCloseable {

		/**
		 * Is told nothing.
		 */
		Handling NONE = new Handling() {

			@Override
			public void failed(Throwable failure) {
			}

			@Override
			public void close() {
			}

		};

		/**
		 * Handling failed.
		 * @param failure why
		 */
		void failed(Throwable failure);

		/**
		 * Handling is over.
		 */
		@Override
		void close();

	}

}
