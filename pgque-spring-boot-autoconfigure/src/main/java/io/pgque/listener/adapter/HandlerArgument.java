package io.pgque.listener.adapter;

import org.jspecify.annotations.Nullable;

/**
 * Resolves one argument of a handler method.
 */
@FunctionalInterface
interface HandlerArgument {

	/**
	 * Resolve the argument.
	 * @param message the message to take it from
	 * @return the argument
	 * @throws Exception when the message doesn't have it, or not in a form that fits
	 */
	@Nullable Object resolve(HandledMessage message) throws Exception;

}
