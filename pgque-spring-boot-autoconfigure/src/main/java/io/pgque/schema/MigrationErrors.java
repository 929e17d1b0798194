package io.pgque.schema;

import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.Set;

import io.pgque.MissingPrivilegeException;
import io.pgque.PgqueException;
import io.pgque.PgqueSchemaException;
import org.jspecify.annotations.Nullable;

/**
 * Says what a failed migration needs.
 */
final class MigrationErrors {

	/**
	 * What lets an ordinary role install the schema.
	 */
	static final String CREATE_ROLES = """
			create role pgque_reader nologin;
			create role pgque_writer nologin;
			create role pgque_admin nologin;
			grant pgque_reader, pgque_writer to pgque_admin;""";

	private static final String OTHER_ROLE = "Or name a role that may: pgque.schema.username and "
			+ "pgque.schema.password. The failed attempt left nothing behind, so just start again";

	/**
	 * No connection, refused credentials, no such database.
	 */
	private static final Set<String> OUT_OF_REACH = Set.of("08", "28", "3D");

	private MigrationErrors() {
	}

	static PgqueException mayNotCreateSchemas(String grant) {
		return new MissingPrivilegeException(
				"The schema pgque could not be installed, since the database role may not create schemas",
				"Have the database's administrator run:\n\n" + grant + "\n\n" + OTHER_ROLE, null);
	}

	static PgqueException translate(Exception failure) {
		SQLException sql = sqlException(failure);
		String text = (sql != null) ? String.valueOf(sql.getMessage()) : String.valueOf(failure.getMessage());
		if (sql != null && "42501".equals(sql.getSQLState())) {
			return missingPrivilege(text.lines().findFirst().orElse(text), failure);
		}
		return new PgqueSchemaException("The schema pgque could not be installed or checked: " + text, remedy(sql),
				failure);
	}

	private static @Nullable String remedy(@Nullable SQLException failure) {
		if (isUnreachable(failure)) {
			return "Check that the database is running and that spring.datasource.url, spring.datasource.username and "
					+ "spring.datasource.password lead to it, or those of pgque.schema where they are set";
		}
		if (failure instanceof SQLTransientConnectionException) {
			return "Installing takes three connections at a time: set pgque.schema.url, which gets them without the "
					+ "pool, or allow the pool more";
		}
		return (failure != null && "55P03".equals(failure.getSQLState()))
				? "Another instance has been installing it for long: look at what it waits for" : null;
	}

	/**
	 * A pool tells of its timeout; why it waited is among the causes.
	 */
	private static boolean isUnreachable(@Nullable Throwable failure) {
		for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
			String state = (cause instanceof SQLException sql) ? sql.getSQLState() : null;
			if (state != null && OUT_OF_REACH.contains(state.substring(0, 2))) {
				return true;
			}
		}
		return false;
	}

	private static PgqueException missingPrivilege(String text, Exception failure) {
		if (text.contains("role")) {
			return new MissingPrivilegeException(
					"The schema pgque could not be installed, since the database role may not create roles (" + text
							+ ")",
					"Have the database's administrator run, once per cluster:\n\n" + CREATE_ROLES + "\n\n" + OTHER_ROLE,
					failure);
		}
		return new MissingPrivilegeException(
				"The schema pgque could not be installed or checked, since the database role lacks a privilege (" + text
						+ ")",
				"To check it, the role needs pgque_reader or pgque_writer; to upgrade it, it has to own it. "
						+ OTHER_ROLE,
				failure);
	}

	private static @Nullable SQLException sqlException(Throwable failure) {
		for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
			if (cause instanceof SQLException sql) {
				return sql;
			}
		}
		return null;
	}

}
