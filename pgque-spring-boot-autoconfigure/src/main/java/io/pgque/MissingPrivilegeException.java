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
	 * @param problem what is wrong
	 * @param remedy what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public MissingPrivilegeException(String problem, @Nullable String remedy, @Nullable Throwable cause) {
		super(problem, remedy, cause);
	}

}
