package io.pgque.schema;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import javax.sql.DataSource;

import io.pgque.MissingPrivilegeException;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

import org.springframework.jdbc.core.JdbcTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Installing on a server that has never seen the engine, so that the roles, which all its
 * databases share, don't exist either. A server of its own, for nobody else may have
 * installed anything.
 */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class FreshClusterTests {

	private static EmbeddedPostgres server;

	@BeforeAll
	static void start() throws IOException {
		server = EmbeddedPostgres.builder().setServerConfig("fsync", "off").start();
	}

	@AfterAll
	static void stop() throws IOException {
		server.close();
	}

	private static JdbcTemplate administration() {
		return new JdbcTemplate(server.getPostgresDatabase());
	}

	private static void dropRoles() {
		administration().execute("drop role if exists pgque_admin, pgque_reader, pgque_writer");
	}

	@Test
	@Order(1)
	void roleWithoutCreateRoleIsToldTheStatements() {
		administration().execute("create role app login password 'app'");
		administration().execute("create database app owner app");
		DataSource app = server.getDatabase("app", "app");
		PgqueSchemaMigrator migrator = new PgqueSchemaMigrator(app, app);
		assertThatExceptionOfType(MissingPrivilegeException.class).isThrownBy(migrator::migrate)
			.withMessageContaining("may not create roles")
			.withMessageContaining("permission denied to create role")
			.withMessageContaining(MigrationErrors.CREATE_ROLES);
		// Roles that exist, but not the grant.
		String[] statements = MigrationErrors.CREATE_ROLES.split("\n");
		for (int i = 0; i < 3; i++) {
			administration().execute(statements[i]);
		}
		assertThatExceptionOfType(MissingPrivilegeException.class).isThrownBy(migrator::migrate)
			.withMessageContaining(MigrationErrors.CREATE_ROLES);
		administration().execute(statements[3]);
		migrator.migrate();
		assertThat(new JdbcTemplate(app).queryForObject("select pgque.version()", String.class))
			.isEqualTo(PgqueSchema.RELEASE);
		administration().execute("drop database app");
		dropRoles();
	}

	@Test
	@Order(2)
	void fourDatabasesAndEightInstancesOfEachInstallAtOnce() throws Exception {
		int databases = 4;
		int instances = 8;
		ExecutorService executor = Executors.newFixedThreadPool(databases * instances);
		try {
			CyclicBarrier start = new CyclicBarrier(databases * instances);
			List<Future<?>> results = new ArrayList<>();
			for (int database = 0; database < databases; database++) {
				String name = "race" + database;
				administration().execute("create database " + name);
				for (int instance = 0; instance < instances; instance++) {
					results.add(executor.submit(() -> install(name, start)));
				}
			}
			for (Future<?> result : results) {
				result.get();
			}
		}
		finally {
			executor.shutdownNow();
		}
		for (int database = 0; database < databases; database++) {
			JdbcTemplate jdbc = new JdbcTemplate(server.getDatabase("postgres", "race" + database));
			assertThat(jdbc.queryForObject("select pgque.version()", String.class)).isEqualTo(PgqueSchema.RELEASE);
			assertThat(jdbc.queryForObject("select count(*)::int from pgque.flyway_schema_history where version = '1'",
					Integer.class))
				.isOne();
		}
	}

	private static Void install(String database, CyclicBarrier start) throws Exception {
		DataSource dataSource = server.getDatabase("postgres", database);
		start.await();
		new PgqueSchemaMigrator(dataSource, dataSource).migrate();
		return null;
	}

}
