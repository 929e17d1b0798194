package io.pgque.sample;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;

import javax.sql.DataSource;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.stereotype.Component;

/**
 * Says, once everything runs, which database is used and what to try.
 */
@Component
class Welcome {

	private static final Logger logger = LoggerFactory.getLogger(Welcome.class);

	private final DataSource dataSource;

	private final ObjectProvider<EmbeddedPostgres> embedded;

	private final Environment environment;

	Welcome(DataSource dataSource, ObjectProvider<EmbeddedPostgres> embedded, Environment environment) {
		this.dataSource = dataSource;
		this.embedded = embedded;
		this.environment = environment;
	}

	@EventListener(ApplicationReadyEvent.class)
	void greet() throws SQLException {
		String server = "http://localhost:" + this.environment.getProperty("local.server.port");
		logger.info("""
				Using {}

				Place an order, see how far it is, and see what failed:

				  curl -s {}/orders -H 'Content-Type: application/json' -d '{"customer":"Ada","total":42.50}'
				  curl -s {}/orders/1
				  curl -s {}/dead-letters
				""", database(), server, server, server);
	}

	private String database() throws SQLException {
		boolean own = this.embedded.getIfAvailable() != null;
		try (Connection connection = this.dataSource.getConnection()) {
			DatabaseMetaData database = connection.getMetaData();
			return (own ? "an embedded PostgreSQL " : "the PostgreSQL of spring.datasource.url, ")
					+ database.getDatabaseProductVersion() + " at " + database.getURL() + " (user "
					+ database.getUserName() + (own ? ", gone when this application stops)" : ")");
		}
	}

}
