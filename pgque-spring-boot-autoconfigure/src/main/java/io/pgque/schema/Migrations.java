package io.pgque.schema;

import javax.sql.DataSource;

import io.pgque.PgqueSchemaException;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.jspecify.annotations.Nullable;

import org.springframework.util.ClassUtils;

/**
 * Runs the migrations with a Flyway of our own, which shares nothing with an
 * application's: neither bean nor settings, neither history nor locations.
 */
final class Migrations {

	private final ClassLoader classLoader;

	private final String[] locations;

	Migrations(ClassLoader classLoader, String... locations) {
		this.classLoader = classLoader;
		this.locations = locations;
	}

	/**
	 * Run what has not been run.
	 * @param dataSource leads to the database
	 * @param baseline the last versioned migration that a schema without history has, or
	 * {@code null} when there is a history, or nothing
	 */
	void run(DataSource dataSource, @Nullable String baseline) {
		requireClass("org.flywaydb.core.Flyway", "org.flywaydb:flyway-core");
		requireClass("org.flywaydb.database.postgresql.PostgreSQLDatabaseType",
				"org.flywaydb:flyway-database-postgresql");
		FlywayRun.run(this.classLoader, dataSource, this.locations, baseline);
	}

	private void requireClass(String name, String artifact) {
		if (!ClassUtils.isPresent(name, this.classLoader)) {
			throw new PgqueSchemaException(
					"The schema pgque has to be installed, and " + artifact + " is not on the class path",
					"Add the dependency " + artifact
							+ ", or have the database's administrator run pgque-install.sql and set "
							+ "pgque.schema.mode=validate",
					null);
		}
	}

	/**
	 * Apart, so that Flyway's classes are loaded only when there are any.
	 */
	private static final class FlywayRun {

		static void run(ClassLoader classLoader, DataSource dataSource, String[] locations, @Nullable String baseline) {
			FluentConfiguration configuration = Flyway.configure(classLoader)
				.dataSource(new TransactionPoolerDataSource(dataSource))
				.locations(locations)
				.schemas(PgqueSchema.NAME)
				.defaultSchema(PgqueSchema.NAME)
				.table(PgqueSchema.HISTORY_TABLE)
				.placeholderReplacement(false)
				.failOnMissingLocations(true)
				.cleanDisabled(true)
				.group(true);
			try {
				if (baseline != null) {
					Flyway.configure(classLoader)
						.configuration(configuration)
						.baselineVersion(baseline)
						.baselineDescription("Installed by script")
						.load()
						.baseline();
				}
				configuration.load().migrate();
			}
			catch (FlywayException ex) {
				throw MigrationErrors.translate(ex);
			}
		}

	}

}
