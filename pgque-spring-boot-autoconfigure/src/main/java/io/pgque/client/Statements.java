package io.pgque.client;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;

import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.UncategorizedSQLException;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.jdbc.support.SQLExceptionSubclassTranslator;
import org.springframework.jdbc.support.SQLExceptionTranslator;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Sends statements as {@code JdbcTemplate} does, except that one sent outside any Spring
 * transaction commits by itself also where the pool hands out connections with
 * auto-commit off: there it would be rolled back when the connection is returned, and
 * nobody would be told.
 */
final class Statements {

	private static final Duration NETWORK_GRACE = Duration.ofSeconds(5);

	private static final Duration MIN_TIMEOUT = Duration.ofSeconds(1);

	/**
	 * What a network timeout can be told, nearly.
	 */
	private static final Duration MAX_TIMEOUT = Duration.ofDays(24);

	private static final String INVALID_TRANSACTION_STATE = "25000";

	private static final String READ_ONLY = "25006";

	private static final StatementWatch WATCH = new StatementWatch(Duration.ofSeconds(10));

	private final DataSource dataSource;

	private final @Nullable Duration timeout;

	private final SQLExceptionTranslator translator = new SQLExceptionSubclassTranslator();

	private final PoolRenewal renewal;

	private volatile boolean isolationStated;

	Statements(DataSource dataSource, @Nullable Duration timeout) {
		this.dataSource = dataSource;
		this.renewal = new PoolRenewal(dataSource);
		this.timeout = (timeout != null) ? within(timeout, MIN_TIMEOUT, MAX_TIMEOUT) : null;
	}

	private static Duration within(Duration value, Duration min, Duration max) {
		return (value.compareTo(min) < 0) ? min : (value.compareTo(max) > 0) ? max : value;
	}

	boolean isInTransaction() {
		return TransactionSynchronizationManager.isActualTransactionActive()
				&& TransactionSynchronizationManager.hasResource(this.dataSource);
	}

	/**
	 * Whether connections lead to different databases, as far as the data source tells.
	 */
	boolean isRouting() {
		try {
			return this.dataSource.isWrapperFor(AbstractRoutingDataSource.class);
		}
		catch (SQLException ex) {
			// It doesn't tell, so it may.
			return true;
		}
	}

	/**
	 * Whether a statement sent now is a transaction of its own.
	 */
	boolean isAlone() {
		return !TransactionSynchronizationManager.isSynchronizationActive()
				&& !TransactionSynchronizationManager.hasResource(this.dataSource);
	}

	/**
	 * Call a function whose work needn't survive a crash that comes within the next
	 * moments, unless the caller's own work is committed with it.
	 * @return what to select from
	 */
	String fromAsynchronous(String function) {
		return isAlone() ? "pg_catalog.set_config('synchronous_commit', 'off', true), " + function : function;
	}

	<T> T query(@Nullable String queue, String sql, Arguments arguments, Result<T> result) {
		boolean callersBusiness = !isAlone();
		Connection connection = DataSourceUtils.getConnection(this.dataSource);
		try {
			return callersBusiness ? query(connection, sql, arguments, result)
					: queryAlone(connection, sql, arguments, result);
		}
		catch (SQLException ex) {
			if (READ_ONLY.equals(ex.getSQLState())) {
				this.renewal.refused(connection);
			}
			DataAccessException failure = this.translator.translate("PgQue", sql, ex);
			throw EngineErrors.translate(queue, product(connection),
					(failure != null) ? failure : new UncategorizedSQLException("PgQue", sql, ex));
		}
		finally {
			DataSourceUtils.releaseConnection(connection, this.dataSource);
		}
	}

	/**
	 * The engine ticks and rotates in READ COMMITTED only. Where a pool, a role or a
	 * database has another default, statements outside of a transaction state it for
	 * theirs, which a transaction pooler doesn't pass on to anybody.
	 */
	private <T> T queryAlone(Connection connection, String sql, Arguments arguments, Result<T> result)
			throws SQLException {
		if (!this.isolationStated) {
			try {
				T value = query(connection, sql, arguments, result);
				if (!connection.getAutoCommit()) {
					connection.commit();
				}
				return value;
			}
			catch (SQLException ex) {
				if (!INVALID_TRANSACTION_STATE.equals(ex.getSQLState())) {
					throw ex;
				}
				this.isolationStated = true;
			}
		}
		boolean autoCommit = connection.getAutoCommit();
		if (autoCommit) {
			connection.setAutoCommit(false);
		}
		else {
			connection.rollback();
		}
		try {
			try (Statement statement = connection.createStatement()) {
				statement.execute("set transaction isolation level read committed");
			}
			T value = query(connection, sql, arguments, result);
			connection.commit();
			return value;
		}
		catch (SQLException ex) {
			rollback(connection, ex);
			throw ex;
		}
		finally {
			if (autoCommit && !connection.isClosed()) {
				connection.setAutoCommit(true);
			}
		}
	}

	private static void rollback(Connection connection, SQLException failure) {
		try {
			connection.rollback();
		}
		catch (SQLException ex) {
			failure.addSuppressed(ex);
		}
	}

	private <T> T query(Connection connection, String sql, Arguments arguments, Result<T> result) throws SQLException {
		Duration timeout = this.timeout;
		if (timeout == null) {
			return execute(connection, sql, arguments, result);
		}
		// The server's answer to a cancelled statement may not come either.
		int before = connection.getNetworkTimeout();
		connection.setNetworkTimeout(Runnable::run, (int) timeout.plus(NETWORK_GRACE).toMillis());
		try {
			return execute(connection, sql, arguments, result);
		}
		finally {
			if (!connection.isClosed()) {
				connection.setNetworkTimeout(Runnable::run, before);
			}
		}
	}

	private <T> T execute(Connection connection, String sql, Arguments arguments, Result<T> result)
			throws SQLException {
		try (PreparedStatement statement = connection.prepareStatement(sql)) {
			StatementWatch.Limit limit = limit(statement);
			try {
				arguments.bind(statement);
				try (ResultSet rows = statement.executeQuery()) {
					return result.read(rows);
				}
			}
			finally {
				if (limit != null) {
					limit.close();
				}
			}
		}
	}

	/**
	 * Limit a statement by what is left of its transaction's time, or else by our own
	 * limit.
	 */
	private StatementWatch.@Nullable Limit limit(Statement statement) throws SQLException {
		if (TransactionSynchronizationManager.getResource(this.dataSource) instanceof ConnectionHolder holder
				&& holder.hasTimeout()) {
			DataSourceUtils.applyTransactionTimeout(statement, this.dataSource);
			return null;
		}
		Duration timeout = this.timeout;
		return (timeout != null) ? WATCH.limit(statement, timeout) : null;
	}

	/**
	 * Asked only after a failure, to tell a database that can't have the engine from one
	 * that hasn't.
	 */
	private static @Nullable DatabaseProduct product(Connection connection) {
		try {
			return DatabaseProduct.of(connection);
		}
		catch (SQLException ex) {
			// The connection is gone, which the failure itself says.
			return null;
		}
	}

	/**
	 * Binds the arguments of a statement.
	 */
	interface Arguments {

		Arguments NONE = (statement) -> {
		};

		void bind(PreparedStatement statement) throws SQLException;

	}

	/**
	 * Reads the result of a statement.
	 *
	 * @param <T> what it is read as
	 */
	interface Result<T> {

		T read(ResultSet rows) throws SQLException;

	}

}
