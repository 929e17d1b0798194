package io.pgque.client;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.HikariPoolMXBean;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.ClassUtils;

/**
 * Renews the connections of a pool when the server that they lead to takes no writes any
 * more. After a failover another one may be at the same address, but connections stay
 * with the old one, and a pool sees no reason to close them.
 */
final class PoolRenewal {

	private static final Log logger = LogFactory.getLog(PoolRenewal.class);

	private static final boolean HIKARI = ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource",
			PoolRenewal.class.getClassLoader());

	/**
	 * A server that is read-only for a while gets no storm of connections.
	 */
	private static final Duration AT_MOST_EVERY = Duration.ofSeconds(3);

	private final DataSource dataSource;

	private final AtomicLong next = new AtomicLong(System.nanoTime());

	PoolRenewal(DataSource dataSource) {
		this.dataSource = dataSource;
	}

	/**
	 * A statement was refused because everything is read-only. Nothing happens when the
	 * application wanted it so.
	 * @param connection the connection of the statement, which stays usable until it is
	 * given back
	 */
	void refused(Connection connection) {
		long next = this.next.get();
		long now = System.nanoTime();
		if (!HIKARI || now - next < 0) {
			return;
		}
		try {
			if (TransactionSynchronizationManager.isCurrentTransactionReadOnly() || connection.isReadOnly()) {
				return;
			}
			if (this.next.compareAndSet(next, now + AT_MOST_EVERY.toNanos())) {
				Hikari.renew(this.dataSource);
			}
		}
		catch (SQLException | RuntimeException ex) {
			// The refusal is what has to be told.
			logger.debug("The connections of the pool could not be renewed", ex);
		}
	}

	/**
	 * Apart, since the pool's classes may be missing.
	 */
	private static final class Hikari {

		static void renew(DataSource dataSource) throws SQLException {
			if (!dataSource.isWrapperFor(HikariDataSource.class)) {
				return;
			}
			HikariPoolMXBean pool = dataSource.unwrap(HikariDataSource.class).getHikariPoolMXBean();
			if (pool != null) {
				pool.softEvictConnections();
				logger.debug("The database is read-only; the pool opens new connections, which may lead to another");
			}
		}

	}

}
