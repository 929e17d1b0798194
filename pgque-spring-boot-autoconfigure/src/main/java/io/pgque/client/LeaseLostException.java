package io.pgque.client;

import io.pgque.PgqueException;
import org.jspecify.annotations.Nullable;

/**
 * Thrown when an instance receives by a lease that it no longer holds.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class LeaseLostException extends PgqueException {

	/**
	 * Creates an exception.
	 * @param problem who holds the lease
	 * @param cause the failure beneath
	 */
	public LeaseLostException(String problem, @Nullable Throwable cause) {
		super(problem, "Acquire it again", cause);
	}

}
