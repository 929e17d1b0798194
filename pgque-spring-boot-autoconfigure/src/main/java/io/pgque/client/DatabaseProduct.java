package io.pgque.client;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;

import io.pgque.UnsupportedDatabaseException;
import org.jspecify.annotations.Nullable;

/**
 * What a connection leads to.
 *
 * @param name the product name
 * @param majorVersion the major version
 * @since 0.1.0
 */
public record DatabaseProduct(String name, int majorVersion) {

	/**
	 * The oldest PostgreSQL that the engine runs on.
	 */
	public static final int OLDEST_POSTGRESQL = 14;

	/**
	 * Ask a connection what it leads to. PostgreSQL's driver answers by itself.
	 * @param connection the connection
	 * @return the product
	 * @throws SQLException when the driver fails
	 */
	public static DatabaseProduct of(Connection connection) throws SQLException {
		DatabaseMetaData metaData = connection.getMetaData();
		return new DatabaseProduct(metaData.getDatabaseProductName(), metaData.getDatabaseMajorVersion());
	}

	/**
	 * Return whether it is PostgreSQL.
	 * @return {@code true} for PostgreSQL, whatever its version
	 */
	public boolean isPostgres() {
		return "PostgreSQL".equals(this.name);
	}

	/**
	 * Return whether the engine runs on it.
	 * @return {@code true} for PostgreSQL that is new enough
	 */
	public boolean isSupported() {
		return isPostgres() && this.majorVersion >= OLDEST_POSTGRESQL;
	}

	/**
	 * Return an exception that says what is wrong with it.
	 * @param cause the failure that led here, if any
	 * @return the exception
	 */
	public UnsupportedDatabaseException unsupported(@Nullable Throwable cause) {
		if (isPostgres()) {
			return new UnsupportedDatabaseException("PgQue needs PostgreSQL " + OLDEST_POSTGRESQL
					+ " or newer, and the data source leads to version " + this.majorVersion,
					"Upgrade the server, or set pgque.enabled=false", cause);
		}
		return new UnsupportedDatabaseException(
				"PgQue keeps its queues in PostgreSQL, and the data source leads to " + this.name + " "
						+ this.majorVersion,
				"Point spring.datasource.url at PostgreSQL " + OLDEST_POSTGRESQL + " or newer, mark the data source "
						+ "that leads there with @PgqueDataSource, or set pgque.enabled=false",
				cause);
	}

}
