package io.pgque.boot;

import java.util.Map;
import java.util.Properties;

import javax.sql.DataSource;

import io.pgque.boot.PgqueProperties.Connection;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.boot.jdbc.DataSourceBuilder;
import org.springframework.boot.jdbc.UnsupportedDataSourcePropertyException;
import org.springframework.jdbc.datasource.SimpleDriverDataSource;

/**
 * Connections beside the application's pool, for what needs one all the time and mustn't
 * wait for one.
 */
final class DirectDataSource {

	private static final Log logger = LogFactory.getLog(DirectDataSource.class);

	/**
	 * Without, a network that swallows everything holds up even who only logs in, for
	 * ever.
	 */
	private static final Map<String, String> BOUNDED = Map.of("connectTimeout", "3", "socketTimeout", "3");

	private DirectDataSource() {
	}

	/**
	 * Create a data source for notifications, which opens a new connection each time.
	 * Whatever it is used for takes a few seconds at most.
	 * @param pool the application's data source
	 * @param properties what differs from it
	 * @return the data source, or {@code null} when the address of the database can't be
	 * told
	 */
	static @Nullable DataSource forWakeups(DataSource pool, Connection properties) {
		DataSource dataSource = create(pool, properties, "pgque-wakeup");
		if (dataSource == null) {
			logger.warn("Listeners look for messages once per pgque.listener.poll-interval and are not notified, since "
					+ "the address of the database can't be told from its " + pool.getClass().getName()
					+ ". Set pgque.listener.connection.url, username and password, or pgque.listener.wakeup=poll");
		}
		return dataSource;
	}

	/**
	 * Create a data source for the heartbeat, which opens a new connection each time.
	 * Whatever it is used for takes a few seconds at most. A pooler in transaction mode
	 * may be in its way.
	 * @param pool the application's data source
	 * @param properties what differs from it
	 * @return the data source, or {@code null} when the address of the database can't be
	 * told
	 */
	static @Nullable DataSource forHeartbeat(DataSource pool, Connection properties) {
		DataSource dataSource = create(pool, properties, "pgque-heartbeat");
		if (dataSource == null) {
			logger.info("The heartbeat takes connections of the application's pool, since the address of the database "
					+ "can't be told from its " + pool.getClass().getName());
		}
		return dataSource;
	}

	/**
	 * Create a data source for what is left to be settled when the pool is closed.
	 * @param pool the application's data source
	 * @param properties what differs from it
	 * @return the pool and connections beside it; the pool alone when the address of the
	 * database can't be told
	 */
	static DataSource forSettling(DataSource pool, Connection properties) {
		DataSource dataSource = create(pool, properties, "pgque-settle");
		return (dataSource != null) ? new OutlivingDataSource(pool, dataSource) : pool;
	}

	private static @Nullable DataSource create(DataSource pool, Connection properties, String name) {
		SimpleDriverDataSource dataSource = build(pool, properties);
		if (dataSource == null || dataSource.getUrl() == null || dataSource.getDriver() == null) {
			return null;
		}
		Properties connection = PoolProperties.of(pool);
		connection.putAll(BOUNDED);
		// What leads through a pooler in transaction mode can't rely on prepared
		// statements.
		connection.setProperty("prepareThreshold", "0");
		connection.setProperty("ApplicationName", name);
		connection.setProperty("tcpKeepAlive", "true");
		dataSource.setConnectionProperties(connection);
		return dataSource;
	}

	private static @Nullable SimpleDriverDataSource build(DataSource pool, Connection properties) {
		try {
			DataSourceBuilder<SimpleDriverDataSource> builder = DataSourceBuilder.derivedFrom(pool)
				.type(SimpleDriverDataSource.class);
			if (properties.url() != null) {
				builder.url(properties.url());
			}
			if (properties.username() != null) {
				builder.username(properties.username()).password(properties.password());
			}
			return builder.build();
		}
		catch (UnsupportedDataSourcePropertyException | IllegalStateException ex) {
			logger.debug("No connections can be derived from the data source", ex);
			return (properties.url() != null) ? DataSourceBuilder.create()
				.type(SimpleDriverDataSource.class)
				.url(properties.url())
				.username(properties.username())
				.password(properties.password())
				.build() : null;
		}
	}

}
