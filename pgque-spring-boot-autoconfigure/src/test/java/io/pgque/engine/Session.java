package io.pgque.engine;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import io.pgque.testsupport.TestDatabase;

/**
 * One database session, for tests in which several of them meet.
 */
final class Session implements AutoCloseable {

	private final Connection connection;

	private Session(Connection connection) {
		this.connection = connection;
	}

	/**
	 * Open a session that commits each statement.
	 */
	static Session autoCommit(TestDatabase database) throws SQLException {
		return new Session(database.connect());
	}

	/**
	 * Open a session in which a transaction begins with the first statement.
	 */
	static Session transactional(TestDatabase database) throws SQLException {
		Session session = autoCommit(database);
		session.connection.setAutoCommit(false);
		return session;
	}

	/**
	 * Open a session whose transactions keep the snapshot of their first statement.
	 */
	static Session repeatableRead(TestDatabase database) throws SQLException {
		Session session = transactional(database);
		session.connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
		return session;
	}

	Connection connection() {
		return this.connection;
	}

	/**
	 * Run a statement and return the first column of its rows.
	 */
	<T> List<@Nullable T> column(Class<T> type, String sql, Object... arguments) throws SQLException {
		List<@Nullable T> values = new ArrayList<>();
		try (PreparedStatement statement = this.connection.prepareStatement(sql)) {
			for (int i = 0; i < arguments.length; i++) {
				statement.setObject(i + 1, arguments[i]);
			}
			try (ResultSet rows = statement.executeQuery()) {
				while (rows.next()) {
					values.add(rows.getObject(1, type));
				}
			}
		}
		return values;
	}

	<T> @Nullable T value(Class<T> type, String sql, Object... arguments) throws SQLException {
		return column(type, sql, arguments).get(0);
	}

	void run(String sql) throws SQLException {
		try (var statement = this.connection.createStatement()) {
			statement.execute(sql);
		}
	}

	long send(String queue, String payload) throws SQLException {
		Long id = value(Long.class, "select pgque.send(?, 'test', ?::text)", queue, payload);
		return (id != null) ? id : 0;
	}

	/**
	 * Receive a batch of any size and finish it.
	 * @return the ids of its events
	 */
	List<Long> consume(String queue, String consumer) throws SQLException {
		List<Long> ids = new ArrayList<>();
		long batch = 0;
		try (PreparedStatement statement = this.connection
			.prepareStatement("select msg_id, batch_id from pgque.receive_batch(?, ?, 1000000, 1000000000)")) {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			try (ResultSet rows = statement.executeQuery()) {
				while (rows.next()) {
					ids.add(rows.getLong(1));
					batch = rows.getLong(2);
				}
			}
		}
		if (!ids.isEmpty()) {
			value(Integer.class, "select pgque.ack(?)", batch);
		}
		return ids;
	}

	List<Long> sendBatch(String queue, String... payloads) throws SQLException {
		Array ids = value(Array.class, "select pgque.send_batch(?, 'test', ?)", queue,
				this.connection.createArrayOf("text", payloads));
		return (ids != null) ? List.of((Long[]) ids.getArray()) : List.of();
	}

	int backend() throws SQLException {
		Integer id = value(Integer.class, "select pg_backend_pid()");
		return (id != null) ? id : 0;
	}

	void commit() throws SQLException {
		this.connection.commit();
	}

	void rollback() throws SQLException {
		this.connection.rollback();
	}

	@Override
	public void close() throws SQLException {
		this.connection.close();
	}

}
