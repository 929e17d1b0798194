package io.pgque.listener;

import io.pgque.core.PgqueMessage;

/**
 * What is around the call of a handler.
 */
@FunctionalInterface
interface HandlerScope {

	/**
	 * Nothing.
	 */
	HandlerScope NONE = (message, handler) -> handler.run();

	/**
	 * Call a handler.
	 * @param message the message that it is given, or the first of them
	 * @throws Exception what the handler has thrown
	 */
	void run(PgqueMessage message, Call handler) throws Exception;

	/**
	 * The call of a handler.
	 */
	@FunctionalInterface
	interface Call {

		/**
		 * Call the handler.
		 */
		void run() throws Exception;

	}

}
