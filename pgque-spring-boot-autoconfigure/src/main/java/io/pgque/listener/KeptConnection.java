package io.pgque.listener;

import java.sql.Connection;
import java.sql.SQLException;

import javax.sql.DataSource;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.jdbc.datasource.SmartDataSource;

/**
 * Hands out one connection, again and again, to one thread. When that is of no use any
 * more, it is discarded, and the next call opens another.
 */
final class KeptConnection extends AbstractDataSource implements SmartDataSource {

	private static final Log logger = LogFactory.getLog(KeptConnection.class);

	private final DataSource target;

	private @Nullable Connection connection;

	KeptConnection(DataSource target) {
		this.target = target;
	}

	@Override
	public Connection getConnection() throws SQLException {
		Connection connection = this.connection;
		if (connection == null) {
			connection = this.target.getConnection();
			this.connection = connection;
		}
		return connection;
	}

	@Override
	public Connection getConnection(String username, String password) throws SQLException {
		throw new UnsupportedOperationException("The user is that of the data source");
	}

	@Override
	public boolean shouldClose(Connection connection) {
		return connection != this.connection;
	}

	/**
	 * Return whether there is a connection, be it of any use or not.
	 */
	boolean isOpen() {
		return this.connection != null;
	}

	/**
	 * Close the connection, if there is one.
	 */
	void discard() {
		Connection connection = this.connection;
		this.connection = null;
		if (connection == null) {
			return;
		}
		try {
			connection.close();
		}
		catch (SQLException ex) {
			logger.debug("A connection that was of no use could not be closed", ex);
		}
	}

}
