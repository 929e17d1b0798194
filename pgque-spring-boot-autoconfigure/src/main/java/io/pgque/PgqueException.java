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

	private final String problem;

	private final @Nullable String remedy;

	/**
	 * Creates an exception.
	 * @param message what is wrong
	 */
	public PgqueException(String message) {
		this(message, null, null);
	}

	/**
	 * Creates an exception with a cause.
	 * @param message what is wrong
	 * @param cause the failure beneath, or {@code null}
	 */
	public PgqueException(String message, @Nullable Throwable cause) {
		this(message, null, cause);
	}

	/**
	 * Creates an exception that says what to do.
	 * @param problem what is wrong, without a full stop
	 * @param remedy what to do about it, without a full stop, or {@code null}
	 * @param cause the failure beneath, or {@code null}
	 */
	public PgqueException(String problem, @Nullable String remedy, @Nullable Throwable cause) {
		super((remedy != null) ? problem + ". " + remedy : problem, cause);
		this.problem = problem;
		this.remedy = remedy;
	}

	/**
	 * Return what is wrong, without what to do about it.
	 * @return the problem
	 */
	public String getProblem() {
		return this.problem;
	}

	/**
	 * Return what to do about it.
	 * @return the way out, or {@code null} when none is known
	 */
	public @Nullable String getRemedy() {
		return this.remedy;
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
