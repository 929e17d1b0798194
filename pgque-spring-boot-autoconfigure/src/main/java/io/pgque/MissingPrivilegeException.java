package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when the database role may not do what was asked of it.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class MissingPrivilegeException extends PgqueException {

	/**
	 * Creates an exception.
	 * @param message what is wrong and what to do about it
	 */
	public MissingPrivilegeException(String message) {
		super(message);
	}

	/**
	 * Creates an exception with a cause.
	 * @param message what is wrong and what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public MissingPrivilegeException(String message, @Nullable Throwable cause) {
		super(message, cause);
	}

}
