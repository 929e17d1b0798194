package io.pgque.boot;

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
 * Connections for notifications, beside the application's pool: such a connection is in
 * use all the time.
 */
final class WakeupDataSource {

	private static final Log logger = LogFactory.getLog(WakeupDataSource.class);

	private WakeupDataSource() {
	}

	/**
	 * Create a data source that opens a new connection each time.
	 * @param pool the application's data source
	 * @param properties what differs from it
	 * @return the data source, or {@code null} when the address of the database can't be
	 * told
	 */
	static @Nullable DataSource create(DataSource pool, Connection properties) {
		SimpleDriverDataSource dataSource = build(pool, properties);
		if (dataSource == null || dataSource.getUrl() == null || dataSource.getDriver() == null) {
			logger.warn("Listeners look for messages once per pgque.listener.poll-interval and are not notified, since "
					+ "the address of the database can't be told from its " + pool.getClass().getName()
					+ ". Set pgque.listener.connection.url, username and password, or pgque.listener.wakeup=poll");
			return null;
		}
		Properties connection = PoolProperties.of(pool);
		connection.setProperty("ApplicationName", "pgque-wakeup");
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
