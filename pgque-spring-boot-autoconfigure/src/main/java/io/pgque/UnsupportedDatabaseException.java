package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when the database is not PostgreSQL, or a release of it that is too old.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class UnsupportedDatabaseException extends PgqueException {

	/**
	 * Creates an exception.
	 * @param problem what is wrong
	 * @param remedy what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public UnsupportedDatabaseException(String problem, @Nullable String remedy, @Nullable Throwable cause) {
		super(problem, remedy, cause);
	}

}
