package io.pgque.boot;

import java.util.Properties;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfigMXBean;
import com.zaxxer.hikari.HikariDataSource;
import org.jspecify.annotations.Nullable;

import org.springframework.boot.jdbc.DataSourceUnwrapper;
import org.springframework.util.ClassUtils;

/**
 * The properties that a pool hands to the driver beside address and credentials, such as
 * {@code sslmode}. Connections beside the pool need them as much as the pool's own.
 */
final class PoolProperties {

	private static final boolean HIKARI = ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource",
			PoolProperties.class.getClassLoader());

	private PoolProperties() {
	}

	/**
	 * Return the properties of a data source's connections.
	 * @param dataSource the data source
	 * @return a copy, empty when the data source isn't a pool that tells
	 */
	static Properties of(DataSource dataSource) {
		Properties properties = new Properties();
		if (HIKARI) {
			Hikari.add(dataSource, properties);
		}
		return properties;
	}

	/**
	 * Return how many connections a pool has at most.
	 * @param dataSource the data source
	 * @return the number, {@code null} when the data source isn't a pool that tells
	 */
	static @Nullable Integer maximumSize(DataSource dataSource) {
		return HIKARI ? Hikari.maximumSize(dataSource) : null;
	}

	/**
	 * Return whether a pool is closed.
	 * @param dataSource the data source
	 * @return whether it is; {@code false} when it isn't a pool that tells
	 */
	static boolean isClosed(DataSource dataSource) {
		return HIKARI && Hikari.isClosed(dataSource);
	}

	/**
	 * Apart, since the pool's classes may be missing.
	 */
	private static final class Hikari {

		static @Nullable Integer maximumSize(DataSource dataSource) {
			HikariDataSource pool = unwrap(dataSource);
			return (pool != null) ? pool.getMaximumPoolSize() : null;
		}

		static boolean isClosed(DataSource dataSource) {
			HikariDataSource pool = unwrap(dataSource);
			return pool != null && pool.isClosed();
		}

		private static @Nullable HikariDataSource unwrap(DataSource dataSource) {
			return DataSourceUnwrapper.unwrap(dataSource, HikariConfigMXBean.class, HikariDataSource.class);
		}

		static void add(DataSource dataSource, Properties properties) {
			HikariDataSource pool = unwrap(dataSource);
			if (pool != null) {
				properties.putAll(pool.getDataSourceProperties());
			}
		}

	}

}
