package io.pgque.benchmarks;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * A database with the engine in it.
 *
 * @param url its JDBC URL
 */
record Database(String url) {

	Connection connect() throws SQLException {
		return DriverManager.getConnection(this.url);
	}

	/**
	 * Run statements in a session of their own.
	 */
	void execute(String... statements) throws SQLException {
		try (Connection connection = connect()) {
			for (String sql : statements) {
				execute(connection, sql);
			}
		}
	}

	/**
	 * Run a statement and read all that it returns.
	 * @return the number of rows
	 */
	static long execute(Connection connection, String sql) throws SQLException {
		try (Statement statement = connection.createStatement()) {
			long count = 0;
			if (statement.execute(sql)) {
				try (ResultSet rows = statement.getResultSet()) {
					while (rows.next()) {
						count++;
					}
				}
			}
			return count;
		}
	}

	/**
	 * Run a statement and read all that it returns.
	 * @return how long it took, in milliseconds
	 */
	static double time(Connection connection, String sql) throws SQLException {
		long start = System.nanoTime();
		execute(connection, sql);
		return (System.nanoTime() - start) / 1e6;
	}

}
