package io.pgque;

import java.sql.SQLException;

import org.jspecify.annotations.Nullable;

import org.springframework.core.NestedRuntimeException;

/**
 * Base class of the errors that PgQue itself reports. Failures of the connection or of
 * the server stay what they are, Spring's
 * {@code org.springframework.dao.DataAccessException}s.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class PgqueException extends NestedRuntimeException {

	/**
	 * Creates an exception.
	 * @param message what is wrong and what to do about it
	 */
	public PgqueException(String message) {
		super(message);
	}

	/**
	 * Creates an exception with a cause.
	 * @param message what is wrong and what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public PgqueException(String message, @Nullable Throwable cause) {
		super(message, cause);
	}

	/**
	 * Return the SQLSTATE that the database reported.
	 * @return the SQLSTATE, or {@code null} when no statement had been sent
	 */
	public @Nullable String getSqlState() {
		for (Throwable cause = getCause(); cause != null; cause = cause.getCause()) {
			if (cause instanceof SQLException sql && sql.getSQLState() != null) {
				return sql.getSQLState();
			}
		}
		return null;
	}

}
