package io.pgque.engine;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import io.pgque.engine.SqlCalls.SqlError;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

/**
 * A connection that speaks like a public client: strings and nulls go without a type, and
 * integers as narrow as they are given.
 */
final class ClientSession implements AutoCloseable {

	/**
	 * How results travel.
	 */
	enum Protocol {

		TEXT("binaryTransfer=false&prepareThreshold=0"), BINARY("binaryTransfer=true&prepareThreshold=-1");

		private final String settings;

		Protocol(String settings) {
			this.settings = settings;
		}

	}

	private final Connection connection;

	ClientSession(TestDatabase database, Protocol protocol) throws SQLException {
		this.connection = DriverManager.getConnection(database.url() + "?stringtype=unspecified&" + protocol.settings,
				database.user(), database.password());
	}

	Connection connection() {
		return this.connection;
	}

	/**
	 * Run a query, as clients do whose drivers leave types to the server.
	 * @param arguments strings, integers of two, four or eight bytes, and nulls
	 */
	Result query(String sql, @Nullable Object... arguments) throws SQLException {
		try (PreparedStatement statement = this.connection.prepareStatement(sql)) {
			for (int i = 0; i < arguments.length; i++) {
				Object argument = arguments[i];
				if (argument == null) {
					statement.setNull(i + 1, Types.OTHER);
				}
				else if (argument instanceof Short number) {
					statement.setShort(i + 1, number);
				}
				else if (argument instanceof Integer number) {
					statement.setInt(i + 1, number);
				}
				else if (argument instanceof Long number) {
					statement.setLong(i + 1, number);
				}
				else {
					statement.setString(i + 1, (String) argument);
				}
			}
			try (ResultSet rows = statement.executeQuery()) {
				return Result.of(rows);
			}
		}
	}

	/**
	 * Return the parameter types that the server describes, as a client asks for which
	 * binds what it is told.
	 */
	List<String> parameterTypes(String sql) throws SQLException {
		try (PreparedStatement statement = this.connection.prepareStatement(sql)) {
			List<String> types = new ArrayList<>();
			for (int i = 1; i <= statement.getParameterMetaData().getParameterCount(); i++) {
				types.add(statement.getParameterMetaData().getParameterTypeName(i));
			}
			return types;
		}
	}

	/**
	 * Run a query that has to fail.
	 */
	SqlError error(String sql, @Nullable Object... arguments) {
		try {
			return fail("Expected an error, not %s: %s", query(sql, arguments).rows(), sql);
		}
		catch (SQLException ex) {
			return SqlError.of(ex);
		}
	}

	@Override
	public void close() throws SQLException {
		this.connection.close();
	}

	/**
	 * What a query returned.
	 *
	 * @param names names of its columns
	 * @param types types of its columns
	 * @param rows its rows, by position
	 */
	record Result(List<String> names, List<String> types, List<List<@Nullable Object>> rows) {

		static Result of(ResultSet resultSet) throws SQLException {
			ResultSetMetaData metaData = resultSet.getMetaData();
			List<String> names = new ArrayList<>();
			List<String> types = new ArrayList<>();
			for (int i = 1; i <= metaData.getColumnCount(); i++) {
				names.add(metaData.getColumnLabel(i));
				types.add(metaData.getColumnTypeName(i));
			}
			List<List<@Nullable Object>> rows = new ArrayList<>();
			while (resultSet.next()) {
				List<@Nullable Object> row = new ArrayList<>();
				for (int i = 1; i <= names.size(); i++) {
					row.add(resultSet.getObject(i));
				}
				rows.add(row);
			}
			return new Result(names, types, rows);
		}

		/**
		 * Check for one value of a type, and return it.
		 */
		@Nullable Object value(String type) {
			assertThat(this.types).containsExactly(type);
			assertThat(this.rows).hasSize(1);
			return this.rows.get(0).get(0);
		}

		long id() {
			return (value("int8") instanceof Long id) ? id : fail("Expected an id");
		}

		int number() {
			return (value("int4") instanceof Integer number) ? number : fail("Expected a number");
		}

		@Nullable Object at(int row, String name) {
			return this.rows.get(row).get(this.names.indexOf(name));
		}

	}

}
