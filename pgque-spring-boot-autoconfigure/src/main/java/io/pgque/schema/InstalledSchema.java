package io.pgque.schema;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import org.jspecify.annotations.Nullable;

/**
 * What a database has in place of the engine's schema.
 *
 * @param origin whose it is
 * @param release which release, if it is ours
 * @param history whether Flyway installed it
 */
record InstalledSchema(Origin origin, @Nullable Release release, boolean history) {

	/**
	 * From the catalog, which everybody may read, whatever the schema's grants.
	 */
	private static final String CONTENT = """
			select
			  exists (select from pg_catalog.pg_proc p
			    where p.pronamespace = n.oid and p.proname = 'version' and p.pronargs = 0),
			  exists (select from pg_catalog.pg_proc p
			    where p.pronamespace = n.oid and p.proname = 'distribution' and p.pronargs = 0),
			  exists (select from pg_catalog.pg_class c
			    where c.relnamespace = n.oid and c.relname = '%1$s'),
			  exists (select from pg_catalog.pg_proc p where p.pronamespace = n.oid)
			    or exists (select from pg_catalog.pg_class c
			      where c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
			        and c.relname <> '%1$s')
			from pg_catalog.pg_namespace n where n.nspname = '%2$s'
			""".formatted(PgqueSchema.HISTORY_TABLE, PgqueSchema.NAME);

	/**
	 * Look at a database.
	 */
	static InstalledSchema of(Connection connection) throws SQLException {
		try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(CONTENT)) {
			if (!row.next()) {
				return new InstalledSchema(Origin.NOTHING, null, false);
			}
			boolean history = row.getBoolean(3);
			if (!row.getBoolean(4)) {
				return new InstalledSchema(Origin.NOTHING, null, history);
			}
			if (!row.getBoolean(1) || !row.getBoolean(2)) {
				return new InstalledSchema(Origin.SOMEBODY_ELSE, null, history);
			}
			return of(statement, history);
		}
	}

	private static InstalledSchema of(Statement statement, boolean history) throws SQLException {
		try (ResultSet row = statement.executeQuery("select pgque.distribution(), pgque.release()")) {
			row.next();
			return PgqueSchema.DISTRIBUTION.equals(row.getString(1))
					? new InstalledSchema(Origin.OURS, Release.parse(row.getString(2)), history)
					: new InstalledSchema(Origin.SOMEBODY_ELSE, null, history);
		}
	}

	/**
	 * Whose schema it is.
	 */
	enum Origin {

		/**
		 * There is none, or an empty one.
		 */
		NOTHING,

		/**
		 * This library's, however it was installed.
		 */
		OURS,

		/**
		 * Not this library's.
		 */
		SOMEBODY_ELSE

	}

}
