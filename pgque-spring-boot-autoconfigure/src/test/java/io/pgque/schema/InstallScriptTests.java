package io.pgque.schema;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for the script that the build makes out of the migrations.
 */
class InstallScriptTests {

	static final String OBJECTS = """
			select 'relation ' || c.oid::regclass || ' ' || c.relkind::text || ' ' || coalesce(c.relacl::text, '')
			from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
			where n.nspname like 'pgque%' and c.relname not like '%flyway_schema_history%'
			union all
			select 'function ' || p.oid::regprocedure || ' ' || coalesce(p.proacl::text, '') || ' ' || md5(p.prosrc)
			from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
			where n.nspname like 'pgque%'
			union all
			select 'schema ' || n.nspname || ' ' || coalesce(n.nspacl::text, '')
			from pg_catalog.pg_namespace n
			where n.nspname like 'pgque%'
			order by 1
			""";

	@Test
	void scriptMakesWhatTheMigrationsMake() throws IOException {
		try (TestDatabase migrated = TestDatabase.migrated(); TestDatabase installed = TestDatabase.empty()) {
			// The one line that is for psql and not for the server.
			installed.execute(script().replace("\\set ON_ERROR_STOP on\n", ""));
			assertThat(installed.values(String.class, OBJECTS)).isNotEmpty()
				.isEqualTo(migrated.values(String.class, OBJECTS));
		}
	}

	@Test
	void versionsComeByNumberAndRepeatablesByName(@TempDir Path folder) throws IOException, InterruptedException {
		Path migrations = Files.createDirectory(folder.resolve("migrations"));
		for (String name : List.of("V10__j.sql", "V9__i.sql", "R__99_z.sql", "R__10_a.sql")) {
			Files.writeString(migrations.resolve(name), "select '" + name + "';\n");
		}
		Path target = folder.resolve("out/script.sql");
		Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
				"src/build/java/InstallScript.java", migrations.toString(), target.toString())
			.inheritIO()
			.start();
		assertThat(process.waitFor()).isZero();
		assertThat(Files.readString(target)).containsSubsequence("begin;", "V9__i.sql", "V10__j.sql", "R__10_a.sql",
				"R__99_z.sql", "commit;");
	}

	private static String script() throws IOException {
		try (InputStream script = InstallScriptTests.class.getResourceAsStream("pgque-install.sql")) {
			return new String(script.readAllBytes(), StandardCharsets.UTF_8);
		}
	}

}
