package io.pgque.listener;

/**
 * What is around the call of a handler.
 */
@FunctionalInterface
interface HandlerScope {

	/**
	 * Nothing.
	 */
	HandlerScope NONE = Call::run;

	/**
	 * Call a handler.
	 * @throws Exception what the handler has thrown
	 */
	void run(Call handler) throws Exception;

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
