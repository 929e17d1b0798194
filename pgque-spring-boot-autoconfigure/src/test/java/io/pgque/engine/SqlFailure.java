package io.pgque.engine;

import org.postgresql.util.PSQLException;

import org.springframework.core.NestedExceptionUtils;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;

import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.catchThrowableOfType;

/**
 * What the server says when it refuses a statement.
 *
 * @param state SQLSTATE
 * @param message primary message
 */
record SqlFailure(String state, String message) {

	/**
	 * A failure of the engine's own, which has no better code.
	 */
	static SqlFailure raised(String message) {
		return new SqlFailure("P0001", message);
	}

	/**
	 * Run a query that has to fail.
	 */
	static SqlFailure of(TestDatabase database, String sql, Object... arguments) {
		return of(database.jdbc(), sql, arguments);
	}

	/**
	 * Run a query that has to fail.
	 */
	static SqlFailure of(JdbcTemplate jdbc, String sql, Object... arguments) {
		DataAccessException ex = catchThrowableOfType(DataAccessException.class,
				() -> jdbc.queryForList(sql, arguments));
		if (ex == null) {
			throw new AssertionError("Expected an error: " + sql);
		}
		if (NestedExceptionUtils.getRootCause(ex) instanceof PSQLException cause
				&& cause.getServerErrorMessage() != null) {
			return new SqlFailure(cause.getSQLState(), cause.getServerErrorMessage().getMessage());
		}
		throw ex;
	}

}
