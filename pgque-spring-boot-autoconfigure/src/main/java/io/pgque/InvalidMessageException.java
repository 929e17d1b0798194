package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when a message holds something that PostgreSQL's text cannot carry, or lacks
 * what it needs. Nothing was sent.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class InvalidMessageException extends PgqueException {

	/**
	 * Creates an exception.
	 * @param problem what is wrong
	 * @param remedy what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public InvalidMessageException(String problem, @Nullable String remedy, @Nullable Throwable cause) {
		super(problem, remedy, cause);
	}

}
