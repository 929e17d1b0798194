package io.pgque.schema;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import javax.sql.DataSource;

import io.pgque.PgqueSchemaException;
import io.pgque.client.DatabaseProduct;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

import org.springframework.util.Assert;

/**
 * Installs, upgrades or checks the engine's schema. Any number of instances may do so at
 * the same time: one works, the others wait and find it done. When the schema is as new
 * as this library or newer, nothing is done, and Flyway is not even started.
 *
 * @since 0.1.0
 */
public class PgqueSchemaMigrator {

	private static final Log logger = LogFactory.getLog(PgqueSchemaMigrator.class);

	/**
	 * Held, by a transaction, while a schema is installed: "PgQue" in ASCII.
	 */
	private static final long LOCK = 0x5067517565L;

	private final DataSource dataSource;

	private final DataSource migrationDataSource;

	private final Migrations migrations;

	private final Release bundled;

	/**
	 * Creates a migrator.
	 * @param dataSource leads to the database; used to look at it
	 * @param migrationDataSource leads to the same database as a role that may install
	 * the schema; has to give at least three connections at a time, best without a pool
	 */
	public PgqueSchemaMigrator(DataSource dataSource, DataSource migrationDataSource) {
		this(dataSource, migrationDataSource,
				new Migrations(PgqueSchemaMigrator.class.getClassLoader(), PgqueSchema.LOCATION),
				Release.parse(PgqueSchema.RELEASE));
	}

	PgqueSchemaMigrator(DataSource dataSource, DataSource migrationDataSource, Migrations migrations, Release bundled) {
		Assert.notNull(dataSource, "dataSource must not be null");
		Assert.notNull(migrationDataSource, "migrationDataSource must not be null");
		this.dataSource = dataSource;
		this.migrationDataSource = migrationDataSource;
		this.migrations = migrations;
		this.bundled = bundled;
	}

	/**
	 * Install the schema, or upgrade it when it is older than this library. A database
	 * that is not PostgreSQL is left alone with a warning, since test slices like to put
	 * another one in the place of the real one.
	 * @throws io.pgque.UnsupportedDatabaseException when PostgreSQL is too old
	 * @throws PgqueSchemaException when it cannot be installed, or somebody else's schema
	 * is in its place
	 */
	public void migrate() {
		try {
			if (isDatabaseForUs() && isMigrationNeeded(this.dataSource)) {
				migrateAlone();
			}
		}
		catch (SQLException ex) {
			throw MigrationErrors.translate(ex);
		}
	}

	/**
	 * Check that the schema is there and new enough.
	 * @throws io.pgque.UnsupportedDatabaseException when PostgreSQL is too old
	 * @throws PgqueSchemaException when the schema is missing, too old, or somebody
	 * else's
	 */
	public void validate() {
		try {
			if (isDatabaseForUs() && isMigrationNeeded(this.dataSource)) {
				throw new PgqueSchemaException(
						"The database's schema pgque is missing or older than " + this.bundled
								+ ", the release that this application brings",
						"Set pgque.schema.mode=migrate, or have the database's administrator run pgque-install.sql "
								+ "(on a database without the schema) or an instance that migrates",
						null);
			}
		}
		catch (SQLException ex) {
			throw MigrationErrors.translate(ex);
		}
	}

	private boolean isDatabaseForUs() throws SQLException {
		try (Connection connection = this.dataSource.getConnection()) {
			DatabaseProduct product = DatabaseProduct.of(connection);
			if (!product.isPostgres()) {
				logger.warn("The data source leads to " + product.name() + ", so the schema pgque is not installed: "
						+ "PgQue needs PostgreSQL");
				return false;
			}
			if (!product.isSupported()) {
				throw product.unsupported(null);
			}
			return true;
		}
	}

	private boolean isMigrationNeeded(DataSource dataSource) throws SQLException {
		try (Connection connection = dataSource.getConnection()) {
			return isMigrationNeeded(InstalledSchema.of(connection));
		}
	}

	private boolean isMigrationNeeded(InstalledSchema installed) {
		Release release = installed.release();
		if (installed.origin() == InstalledSchema.Origin.SOMEBODY_ELSE) {
			throw new PgqueSchemaException("The database has a schema pgque that this library did not install",
					"Choose one: use another database; rename that schema, or uninstall what is in it; or, when its "
							+ "operator vouches that it suits this application, set pgque.schema.mode=none",
					null);
		}
		if (release == null) {
			return true;
		}
		if (release.major() > this.bundled.major()) {
			throw new PgqueSchemaException(
					"The database's schema pgque is release " + release + ", which release " + this.bundled
							+ " of this application cannot work with",
					"Upgrade the application's PgQue dependency", null);
		}
		if (release.compareTo(this.bundled) > 0) {
			logger.info("The database's schema pgque is release " + release + ", newer than " + this.bundled
					+ " of this application: kept as it is");
		}
		return release.compareTo(this.bundled) < 0;
	}

	/**
	 * The lock ends with its transaction, so it works through a transaction pooler too,
	 * and nobody can forget to give it back.
	 */
	private void migrateAlone() throws SQLException {
		try (Connection connection = this.migrationDataSource.getConnection()) {
			boolean autoCommit = connection.getAutoCommit();
			connection.setAutoCommit(false);
			try {
				lock(connection);
				InstalledSchema installed = InstalledSchema.of(connection);
				if (isMigrationNeeded(installed)) {
					requireCreate(connection);
					migrate(installed);
				}
			}
			finally {
				connection.rollback();
				connection.setAutoCommit(autoCommit);
			}
		}
	}

	private static void lock(Connection connection) throws SQLException {
		try (Statement statement = connection.createStatement()) {
			statement.execute("set local idle_in_transaction_session_timeout = 0");
			statement.execute("set local lock_timeout = '5min'");
			statement.execute("select pg_catalog.pg_advisory_xact_lock(" + LOCK + ")");
		}
	}

	/**
	 * Flyway would find out too, but only after trying for ten seconds.
	 */
	private static void requireCreate(Connection connection) throws SQLException {
		try (Statement statement = connection.createStatement();
				ResultSet row = statement
					.executeQuery("select pg_catalog.has_database_privilege(pg_catalog.current_database(), 'create'), "
							+ "pg_catalog.format('grant create on database %I to %I;', "
							+ "pg_catalog.current_database(), current_user)")) {
			row.next();
			if (!row.getBoolean(1)) {
				throw MigrationErrors.mayNotCreateSchemas(row.getString(2));
			}
		}
	}

	private void migrate(InstalledSchema installed) {
		long start = System.nanoTime();
		Release release = installed.release();
		this.migrations.run(this.migrationDataSource,
				(release != null && !installed.history()) ? PgqueSchema.lastMigration(release) : null);
		logger.info(((release != null) ? "Upgraded schema pgque from release " + release + " to "
				: "Installed schema pgque, release ") + this.bundled + ", in " + (System.nanoTime() - start) / 1_000_000
				+ " ms");
	}

}
