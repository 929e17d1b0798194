package io.pgque.benchmarks;

import java.io.IOException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.flywaydb.core.Flyway;
import org.jspecify.annotations.Nullable;

/**
 * The PostgreSQL that is measured, with the durability settings of a real one.
 */
final class Server implements AutoCloseable {

	private final @Nullable EmbeddedPostgres process;

	private final String urlPattern;

	private int databases;

	private Server(@Nullable EmbeddedPostgres process, String urlPattern) {
		this.process = process;
		this.urlPattern = urlPattern;
	}

	/**
	 * Start an embedded server, or use that of {@code benchmarks.url}, in which
	 * {@code %s} stands for the name of a database.
	 */
	static Server start() throws IOException {
		String url = System.getProperty("benchmarks.url");
		if (url != null) {
			return new Server(null, url);
		}
		EmbeddedPostgres process = EmbeddedPostgres.builder()
			.setServerConfig("fsync", "on")
			.setServerConfig("full_page_writes", "on")
			.setServerConfig("synchronous_commit", "on")
			.setServerConfig("shared_buffers", "512MB")
			.setServerConfig("max_wal_size", "4GB")
			.setServerConfig("checkpoint_timeout", "30min")
			.setServerConfig("max_locks_per_transaction", "256")
			.start();
		return new Server(process, process.getJdbcUrl("postgres", "%s"));
	}

	/**
	 * Make a database with the engine in it.
	 */
	Database database() throws SQLException {
		String name = "benchmark_" + ++this.databases;
		try (Connection connection = DriverManager.getConnection(this.urlPattern.formatted("postgres"));
				Statement statement = connection.createStatement()) {
			statement.execute("drop database if exists " + name + " with (force)");
			statement.execute("create database " + name);
		}
		String url = this.urlPattern.formatted(name);
		Flyway.configure()
			.dataSource(url, null, null)
			.schemas("pgque")
			.defaultSchema("pgque")
			.locations("classpath:io/pgque/schema/log")
			.placeholderReplacement(false)
			.group(true)
			.load()
			.migrate();
		return new Database(url);
	}

	String version() throws SQLException {
		try (Connection connection = DriverManager.getConnection(this.urlPattern.formatted("postgres"));
				Statement statement = connection.createStatement();
				ResultSet rows = statement.executeQuery("show server_version")) {
			rows.next();
			return rows.getString(1);
		}
	}

	@Override
	public void close() throws IOException {
		if (this.process != null) {
			this.process.close();
		}
	}

}
