package io.pgque.listener;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.UUID;

import javax.sql.DataSource;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/**
 * Finds out whether notifications reach a connection at all. Behind a pooler in
 * transaction mode they don't, and nothing fails: the server connection that listens
 * serves somebody else when they arrive.
 *
 * <p>
 * The notification is sent from another connection while the one that listens is idle:
 * sent from itself, it would come back with the answer even through a pooler.
 */
final class NotificationProbe {

	private static final Log logger = LogFactory.getLog(WakeupListener.class);

	private final DataSource dataSource;

	private final Duration timeout;

	private boolean silent;

	/**
	 * Create a probe.
	 * @param dataSource where the connection comes from
	 * @param timeout how long a notification may take
	 */
	NotificationProbe(DataSource dataSource, Duration timeout) {
		this.dataSource = dataSource;
		this.timeout = timeout;
	}

	/**
	 * Notify a connection that listens to nothing yet. Says once that it is silent, and
	 * once that it isn't any more.
	 * @param connection the connection
	 * @return whether the notification arrived
	 * @throws SQLException when the connection fails
	 */
	boolean reaches(Connection connection) throws SQLException {
		String channel = "pgque_probe_" + UUID.randomUUID();
		boolean reached;
		try (Statement statement = connection.createStatement()) {
			statement.execute("listen \"" + channel + '"');
			send(channel);
			reached = isReceived(connection.unwrap(PGConnection.class), channel);
			statement.execute("unlisten \"" + channel + '"');
		}
		if (!reached && !this.silent) {
			logger.warn("Notifications don't arrive on the connection that listens for them, as behind a pooler in "
					+ "transaction mode: listeners look for messages once per pgque.listener.poll-interval. Set "
					+ "pgque.listener.connection.url to an address that leads to the server itself, or "
					+ "pgque.listener.wakeup=poll. Trying again each minute");
		}
		else if (reached && this.silent) {
			logger.info("Notifications arrive now");
		}
		this.silent = !reached;
		return reached;
	}

	private void send(String channel) throws SQLException {
		try (Connection sender = this.dataSource.getConnection();
				PreparedStatement statement = sender.prepareStatement("select pg_catalog.pg_notify(?, '')")) {
			statement.setString(1, channel);
			statement.execute();
			if (!sender.getAutoCommit()) {
				sender.commit();
			}
		}
	}

	private boolean isReceived(PGConnection connection, String channel) throws SQLException {
		long end = System.nanoTime() + this.timeout.toNanos();
		long left = this.timeout.toMillis();
		while (left > 0) {
			PGNotification[] received = connection.getNotifications((int) left);
			if (received != null) {
				for (PGNotification notification : received) {
					if (notification.getName().equals(channel)) {
						return true;
					}
				}
			}
			left = Duration.ofNanos(end - System.nanoTime()).toMillis();
		}
		return false;
	}

}
