package io.pgque.schema;

/**
 * Facts about the engine's schema.
 *
 * @since 0.1.0
 */
public final class PgqueSchema {

	/**
	 * The release of the engine that this library brings.
	 */
	public static final String RELEASE = "0.2.0";

	/**
	 * The name of the schema.
	 */
	public static final String NAME = "pgque";

	/**
	 * Where the migrations lie, as Flyway names it.
	 */
	public static final String LOCATION = "classpath:io/pgque/schema/log";

	/**
	 * The table in which Flyway notes what it has done, inside the schema.
	 */
	public static final String HISTORY_TABLE = "flyway_schema_history";

	/**
	 * What the engine's own schema says of its origin.
	 */
	static final String DISTRIBUTION = "pgque-spring";

	private static final Release INBOX_HOLDS_AND_PAGES = Release.parse("0.2.0");

	private PgqueSchema() {
	}

	/**
	 * Return the last versioned migration of a release, for schemas installed by script,
	 * which have no history.
	 */
	static String lastMigration(Release release) {
		// One line for each release that comes with new versioned migrations.
		return (release.compareTo(INBOX_HOLDS_AND_PAGES) < 0) ? "1" : "4";
	}

}
