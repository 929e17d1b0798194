package io.pgque.testsupport;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;

import org.springframework.jdbc.core.simple.JdbcClient;

/**
 * A PostgreSQL outside of the application that a test runs; stopped when the JVM ends.
 */
public final class TestPostgres {

	private static EmbeddedPostgres server;

	private final String url;

	private final JdbcClient jdbc;

	private TestPostgres(String url, JdbcClient jdbc) {
		this.url = url;
		this.jdbc = jdbc;
	}

	/**
	 * Create an empty database.
	 * @param name its name, used once
	 */
	public static synchronized TestPostgres database(String name) {
		if (server == null) {
			server = start();
		}
		JdbcClient.create(server.getPostgresDatabase()).sql("create database " + name).update();
		return new TestPostgres("jdbc:postgresql://localhost:" + server.getPort() + "/" + name,
				JdbcClient.create(server.getDatabase("postgres", name)));
	}

	private static EmbeddedPostgres start() {
		try {
			return EmbeddedPostgres.builder()
				.setLocaleConfig("locale", "C")
				.setPGStartupWait(Duration.ofMinutes(1))
				.start();
		}
		catch (IOException ex) {
			throw new UncheckedIOException(ex);
		}
	}

	public String url() {
		return this.url;
	}

	public String user() {
		return "postgres";
	}

	public JdbcClient jdbc() {
		return this.jdbc;
	}

}
