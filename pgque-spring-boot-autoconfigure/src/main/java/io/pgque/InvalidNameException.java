package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when the name of a queue or consumer is missing or too long.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class InvalidNameException extends PgqueException {

	/**
	 * Creates an exception.
	 * @param message what is wrong and what to do about it
	 */
	public InvalidNameException(String message) {
		super(message);
	}

	/**
	 * Creates an exception with a cause.
	 * @param message what is wrong and what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public InvalidNameException(String message, @Nullable Throwable cause) {
		super(message, cause);
	}

}
