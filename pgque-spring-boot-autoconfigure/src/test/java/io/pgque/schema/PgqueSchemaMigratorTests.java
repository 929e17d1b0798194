package io.pgque.schema;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import java.util.List;

import javax.sql.DataSource;

import io.pgque.MissingPrivilegeException;
import io.pgque.PgqueSchemaException;
import io.pgque.UnsupportedDatabaseException;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.core.io.Resource;
import org.springframework.core.io.support.PathMatchingResourcePatternResolver;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.BDDMockito.given;
import static org.mockito.Mockito.mock;

/**
 * Tests for {@link PgqueSchemaMigrator}.
 */
@ExtendWith(OutputCaptureExtension.class)
class PgqueSchemaMigratorTests {

	private static final String NEXT = "classpath:io/pgque/schema/next";

	private final DataSource broken = new AbstractDataSource() {

		@Override
		public Connection getConnection() throws SQLException {
			throw new SQLException("Nobody should ask");
		}

		@Override
		public Connection getConnection(String username, String password) throws SQLException {
			return getConnection();
		}

	};

	private TestDatabase database;

	@BeforeEach
	void createDatabase() {
		this.database = TestDatabase.empty();
	}

	@AfterEach
	void dropDatabase() {
		this.database.close();
	}

	private PgqueSchemaMigrator migrator() {
		return new PgqueSchemaMigrator(this.database.dataSource(), this.database.dataSource());
	}

	private PgqueSchemaMigrator migratorThatCannotMigrate() {
		return new PgqueSchemaMigrator(this.database.dataSource(), this.broken);
	}

	private PgqueSchemaMigrator nextRelease() {
		return new PgqueSchemaMigrator(this.database.dataSource(), this.database.dataSource(),
				new Migrations(getClass().getClassLoader(), PgqueSchema.LOCATION, NEXT), Release.parse("0.3.0"));
	}

	private String version() {
		return this.database.value(String.class, "select pgque.version()");
	}

	private List<String> history() {
		return this.database.values(String.class,
				"select coalesce(version, 'R') || ' ' || type from pgque.flyway_schema_history"
						+ " where type <> 'SCHEMA' order by installed_rank");
	}

	private void installByScript() throws IOException {
		try (InputStream script = getClass().getResourceAsStream("/io/pgque/schema/pgque-install.sql")) {
			this.database.execute(
					new String(script.readAllBytes(), StandardCharsets.UTF_8).replace("\\set ON_ERROR_STOP on\n", ""));
		}
	}

	@Test
	void installsWithItsHistoryInItsSchema(CapturedOutput output) {
		migrator().migrate();
		assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
		assertThat(history()).startsWith("1 SQL", "2 SQL", "3 SQL", "4 SQL", "R SQL");
		assertThat(this.database.values(String.class,
				"select tablename::text from pg_catalog.pg_tables where schemaname = 'public'"))
			.isEmpty();
		assertThat(output).contains("Installed schema pgque, release 0.2.0");
	}

	@Test
	void doesNotEvenStartWhenTheReleaseIsThere() {
		migrator().migrate();
		migratorThatCannotMigrate().migrate();
	}

	@Test
	void keepsNewerRelease(CapturedOutput output) {
		nextRelease().migrate();
		migratorThatCannotMigrate().migrate();
		migratorThatCannotMigrate().validate();
		assertThat(version()).isEqualTo("0.3.0");
		assertThat(output).contains("is release 0.3.0, newer than 0.2.0 of this application: kept as it is");
	}

	@Test
	void refusesNewerMajorRelease() {
		migrator().migrate();
		this.database.execute("create or replace function pgque.version() returns text language sql immutable"
				+ " as 'select ''1.0.0'''");
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(() -> migratorThatCannotMigrate().migrate())
			.withMessageContaining("release 1.0.0")
			.withMessageContaining("Upgrade the application");
	}

	@Test
	void upgradesOlderRelease(CapturedOutput output) {
		migrator().migrate();
		nextRelease().migrate();
		assertThat(version()).isEqualTo("0.3.0");
		assertThat(history()).contains("1 SQL", "2 SQL", "3 SQL", "4 SQL", "5 SQL");
		assertThat(output).contains("Upgraded schema pgque from release 0.2.0 to 0.3.0");
	}

	@Test
	void callsNothingThatOthersHavePutIntoItsSchema() {
		migrator().migrate();
		this.database.execute("select pgque.create_queue('q')");
		for (String parameters : List.of("text, text", "text, text, integer", "text, text, text")) {
			this.database.execute("create function pgque.format(" + parameters + ") returns text language plpgsql as"
					+ " $$ begin raise exception 'planted'; end $$");
		}
		this.database.execute("update pgque.flyway_schema_history set checksum = 0 where version is null");
		nextRelease().migrate();
		assertThat(version()).isEqualTo("0.3.0");
	}

	@Test
	void takesOverWhatItsOwnScriptInstalled() throws IOException {
		installByScript();
		migratorThatCannotMigrate().migrate();
		migratorThatCannotMigrate().validate();
		nextRelease().migrate();
		assertThat(version()).isEqualTo("0.3.0");
		assertThat(history()).startsWith("4 BASELINE", "5 SQL").doesNotContain("1 SQL");
	}

	@ParameterizedTest
	@CsvSource({ "create table pgque.queue (id int)",
			"create function pgque.version() returns text language sql as 'select ''0.2.0'''" })
	void refusesSomebodyElsesSchema(String content) {
		this.database.execute("create schema pgque");
		this.database.execute(content);
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(() -> migratorThatCannotMigrate().migrate())
			.withMessageContaining("did not install")
			.withMessageContaining("rename that schema")
			.withMessageContaining("pgque.schema.mode=none");
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(() -> migratorThatCannotMigrate().validate());
	}

	@Test
	void refusesAnotherDistribution() {
		migrator().migrate();
		this.database.execute("create or replace function pgque.distribution() returns text language sql immutable"
				+ " as 'select ''other'''");
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(() -> migrator().migrate())
			.withMessageContaining("did not install");
	}

	@Test
	void installsIntoEmptySchemaThatAnAdministratorMade() {
		TestDatabase.LoginRole owner = this.database.createLogin();
		this.database.execute("create schema pgque authorization " + owner.name());
		this.database.execute("grant create on database " + this.database.name() + " to " + owner.name());
		// Its roles exist already, as after the administrator's statements.
		TestDatabase.migrated().close();
		new PgqueSchemaMigrator(owner.dataSource(), owner.dataSource()).migrate();
		assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
	}

	@Test
	void installsNextToTheApplicationsTables() {
		this.database.execute("create table public.orders (id int)");
		migrator().migrate();
		assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
	}

	@Test
	void validates() {
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(() -> migrator().validate())
			.withMessageContaining("missing or older than 0.2.0")
			.withMessageContaining("pgque-install.sql");
		migrator().migrate();
		DataSource reader = this.database.createLogin("pgque_reader").dataSource();
		new PgqueSchemaMigrator(reader, this.broken).validate();
		DataSource writer = this.database.createLogin("pgque_writer").dataSource();
		new PgqueSchemaMigrator(writer, this.broken).validate();
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(() -> nextRelease().validate())
			.withMessageContaining("older than 0.3.0");
		DataSource stranger = this.database.createLogin().dataSource();
		assertThatExceptionOfType(MissingPrivilegeException.class)
			.isThrownBy(() -> new PgqueSchemaMigrator(stranger, this.broken).validate())
			.withMessageContaining("pgque_reader");
	}

	@Test
	void saysThatRoleMayNotCreateSchemas() {
		TestDatabase.migrated().close();
		TestDatabase.LoginRole stranger = this.database.createLogin();
		assertThatExceptionOfType(MissingPrivilegeException.class)
			.isThrownBy(() -> new PgqueSchemaMigrator(stranger.dataSource(), stranger.dataSource()).migrate())
			.withMessageContaining("may not create schemas")
			.withMessageContaining("grant create on database " + this.database.name() + " to " + stranger.name() + ";")
			.withMessageContaining("pgque.schema.username");
	}

	@Test
	void leavesOtherDatabasesAlone(CapturedOutput output) {
		DataSource h2 = new DriverManagerDataSource("jdbc:h2:mem:schema", "sa", "");
		PgqueSchemaMigrator migrator = new PgqueSchemaMigrator(h2, this.broken);
		migrator.migrate();
		migrator.validate();
		assertThat(output).contains("The data source leads to H2, so the schema pgque is not installed");
	}

	@Test
	void refusesOldPostgres() throws SQLException {
		DataSource old = mock(DataSource.class);
		Connection connection = mock(Connection.class);
		DatabaseMetaData metaData = mock(DatabaseMetaData.class);
		given(old.getConnection()).willReturn(connection);
		given(connection.getMetaData()).willReturn(metaData);
		given(metaData.getDatabaseProductName()).willReturn("PostgreSQL");
		given(metaData.getDatabaseMajorVersion()).willReturn(13);
		assertThatExceptionOfType(UnsupportedDatabaseException.class)
			.isThrownBy(() -> new PgqueSchemaMigrator(old, this.broken).migrate())
			.withMessageContaining("PostgreSQL 14 or newer")
			.withMessageContaining("version 13");
	}

	@Test
	void namesMissingFlyway() {
		assertMissing("org.flywaydb:flyway-core", "org.flywaydb.core");
		assertMissing("org.flywaydb:flyway-database-postgresql", "org.flywaydb.database.postgresql");
	}

	private void assertMissing(String artifact, String packageName) {
		PgqueSchemaMigrator migrator = new PgqueSchemaMigrator(this.database.dataSource(), this.database.dataSource(),
				new Migrations(new FilteredClassLoader(packageName), PgqueSchema.LOCATION), Release.parse("0.2.0"));
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(migrator::migrate)
			.withMessageContaining(artifact + " is not on the class path")
			.withMessageContaining("pgque-install.sql");
	}

	@Test
	void saysWhatIsWrongWithAMigration() {
		this.database.execute("create schema pgque_internal");
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(() -> migrator().migrate())
			.withMessageContaining("could not be installed")
			.withMessageContaining("pgque_internal");
		assertThat(this.database.values(String.class,
				"select relname::text from pg_catalog.pg_class where relnamespace = to_regnamespace('pgque')"
						+ " and relname !~ 'flyway'"))
			.isEmpty();
		this.database.execute("drop schema pgque_internal");
		migrator().migrate();
		assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
	}

	@Test
	void scriptsHoldNothingThatLooksLikeAPlaceholder() throws IOException {
		Resource[] scripts = new PathMatchingResourcePatternResolver()
			.getResources("classpath*:io/pgque/schema/log/*.sql");
		assertThat(scripts).isNotEmpty();
		for (Resource script : scripts) {
			assertThat(script.getContentAsString(StandardCharsets.UTF_8)).as(script.getFilename()).doesNotContain("${");
		}
	}

	@Test
	void comparesReleases() {
		assertThat(Release.parse("0.10.0")).isGreaterThan(Release.parse("0.9.9"));
		assertThat(Release.parse("0.3.0-devel")).isEqualByComparingTo(Release.parse("0.3.0")).hasToString("0.3.0");
		assertThatExceptionOfType(PgqueSchemaException.class).isThrownBy(() -> Release.parse("new"))
			.withMessageContaining("'new'");
	}

}
