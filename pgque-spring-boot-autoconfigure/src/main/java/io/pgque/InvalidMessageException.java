package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when a message holds something that PostgreSQL's text cannot carry. Nothing was
 * sent.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class InvalidMessageException extends PgqueException {

	/**
	 * Creates an exception.
	 * @param message what is wrong and what to do about it
	 */
	public InvalidMessageException(String message) {
		super(message);
	}

	/**
	 * Creates an exception with a cause.
	 * @param message what is wrong and what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public InvalidMessageException(String message, @Nullable Throwable cause) {
		super(message, cause);
	}

}
