package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when the name of a queue or consumer is missing or not possible.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class InvalidNameException extends PgqueException {

	/**
	 * Creates an exception.
	 * @param problem what is wrong
	 * @param remedy what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public InvalidNameException(String problem, @Nullable String remedy, @Nullable Throwable cause) {
		super(problem, remedy, cause);
	}

}
