package io.pgque.boot;

import java.sql.Connection;
import java.sql.SQLException;

import javax.sql.DataSource;

import io.pgque.PgqueException;
import io.pgque.boot.PgqueProperties.Schema;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.boot.jdbc.DataSourceBuilder;
import org.springframework.boot.jdbc.UnsupportedDataSourcePropertyException;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.jdbc.datasource.SimpleDriverDataSource;

/**
 * Connections for installing the schema, beside the application's pool: a migration needs
 * three at a time, and its connections are not to be used again. Where the address of the
 * database can't be told from the pool, the pool has to do.
 */
final class MigrationDataSource extends AbstractDataSource {

	private static final Log logger = LogFactory.getLog(MigrationDataSource.class);

	private final DataSource direct;

	private final DataSource pool;

	private MigrationDataSource(DataSource direct, DataSource pool) {
		this.direct = direct;
		this.pool = pool;
	}

	/**
	 * Return whether the schema has an address or credentials of its own.
	 */
	static boolean isOwn(Schema properties) {
		return properties.url() != null || properties.username() != null;
	}

	static DataSource create(DataSource pool, Schema properties) {
		if (!isOwn(properties)) {
			DataSource direct = derive(pool, null, null);
			return (direct != null) ? new MigrationDataSource(direct, pool) : pool;
		}
		if (properties.url() != null) {
			SimpleDriverDataSource own = DataSourceBuilder.create()
				.type(SimpleDriverDataSource.class)
				.url(properties.url())
				.username(properties.username())
				.password(properties.password())
				.build();
			// Parameters of the address win.
			own.setConnectionProperties(PoolProperties.of(pool));
			return own;
		}
		DataSource own = derive(pool, properties.username(), properties.password());
		if (own == null) {
			throw new PgqueException(
					"pgque.schema.username is set, and the address of the database cannot be told from its "
							+ pool.getClass().getName(),
					"Set pgque.schema.url too", null);
		}
		return own;
	}

	private static @Nullable DataSource derive(DataSource pool, @Nullable String username, @Nullable String password) {
		try {
			DataSourceBuilder<SimpleDriverDataSource> builder = DataSourceBuilder.derivedFrom(pool)
				.type(SimpleDriverDataSource.class);
			if (username != null) {
				builder.username(username).password(password);
			}
			SimpleDriverDataSource derived = builder.build();
			derived.setConnectionProperties(PoolProperties.of(pool));
			return (derived.getUrl() != null && derived.getDriver() != null) ? derived : null;
		}
		catch (UnsupportedDataSourcePropertyException | IllegalStateException ex) {
			logger.debug("No connections beside the pool", ex);
			return null;
		}
	}

	@Override
	public Connection getConnection() throws SQLException {
		try {
			return this.direct.getConnection();
		}
		catch (SQLException ex) {
			// The pool may know more about getting connections than its properties tell.
			logger.debug("No connection beside the pool", ex);
			return this.pool.getConnection();
		}
	}

	@Override
	public Connection getConnection(String username, String password) throws SQLException {
		return this.direct.getConnection(username, password);
	}

}
