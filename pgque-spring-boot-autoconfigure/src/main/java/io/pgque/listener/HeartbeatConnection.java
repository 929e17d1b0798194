package io.pgque.listener;

import java.time.Duration;
import java.util.function.Consumer;

import javax.sql.DataSource;

import io.pgque.client.PgqueClient;
import io.pgque.client.SharingClient;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * The two ways of the {@link InstanceHeartbeat} to the database: a connection of its own,
 * and those of the application while that fails. Whichever worked last is taken first, so
 * that a dead end costs its time once and not with every beat. Used by one thread.
 */
final class HeartbeatConnection {

	private static final Log logger = LogFactory.getLog(InstanceHeartbeat.class);

	/**
	 * After which the own connection is tried again although the other way works.
	 */
	private static final Duration OWN_AGAIN_AFTER = Duration.ofSeconds(30);

	/**
	 * What fails later than that has met silence, and would again.
	 */
	private static final Duration QUICKLY = Duration.ofSeconds(1);

	private final String instance;

	private final SharingClient applications;

	private final @Nullable Own own;

	private boolean ownFailed;

	private long ownAgainAt;

	/**
	 * Create the connections.
	 * @param instance whose heartbeat it is, for the log
	 * @param client leads to the database by connections of the application
	 * @param dataSource opens connections beside them, {@code null} when there is none
	 */
	HeartbeatConnection(String instance, PgqueClient client, @Nullable DataSource dataSource) {
		this.instance = instance;
		this.applications = client.sharing();
		this.own = (dataSource != null) ? new Own(new KeptConnection(dataSource)) : null;
	}

	/**
	 * Send a statement.
	 * @throws RuntimeException when neither way leads there
	 */
	void send(Consumer<SharingClient> statement) {
		boolean rests = this.ownFailed && System.nanoTime() - this.ownAgainAt < 0;
		if (this.own != null && !rests && isSent(this.own, statement)) {
			return;
		}
		try {
			statement.accept(this.applications);
		}
		catch (RuntimeException ex) {
			this.ownAgainAt = System.nanoTime();
			throw ex;
		}
	}

	private boolean isSent(Own own, Consumer<SharingClient> statement) {
		boolean kept = own.connection.isOpen();
		long begin = System.nanoTime();
		try {
			statement.accept(own.client);
			this.ownFailed = false;
			return true;
		}
		catch (RuntimeException ex) {
			own.connection.discard();
			if (kept && System.nanoTime() - begin < QUICKLY.toNanos()) {
				// That connection has ended, which says nothing of a new one.
				return isSent(own, statement);
			}
			this.ownAgainAt = System.nanoTime() + OWN_AGAIN_AFTER.toNanos();
			if (!this.ownFailed) {
				this.ownFailed = true;
				logger.warn("The heartbeat of instance " + this.instance
						+ " takes connections of the application's pool until its own works again: " + ex);
			}
			return false;
		}
	}

	void close() {
		if (this.own != null) {
			this.own.connection.discard();
		}
	}

	private static final class Own {

		private final KeptConnection connection;

		private final SharingClient client;

		private Own(KeptConnection connection) {
			this.connection = connection;
			this.client = new PgqueClient(connection).sharing();
		}

	}

}
