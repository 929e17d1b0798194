package io.pgque.testsupport;

import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.BadSqlGrammarException;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link PgqueDatabase} and {@link TestDatabase}.
 */
@PgqueDatabase
class PgqueDatabaseTests {

	static TestDatabase shared;

	TestDatabase injected;

	@Test
	void everyWayLeadsToTheSameDatabase(TestDatabase parameter) {
		assertThat(parameter).isSameAs(shared).isSameAs(this.injected);
	}

	@Test
	void schemaIsThere() {
		assertThat(this.injected.values(String.class, "select nspname from pg_catalog.pg_namespace")).contains("pgque");
	}

	@Test
	void eachDatabaseIsItsOwn() {
		this.injected.execute("create table mine (id int)");
		try (TestDatabase other = TestDatabase.migrated()) {
			assertThat(other.name()).isNotEqualTo(this.injected.name());
			assertThatExceptionOfType(BadSqlGrammarException.class)
				.isThrownBy(() -> other.query("select id from mine"));
		}
	}

	@Test
	void emptyDatabaseHasNoSchema() {
		try (TestDatabase empty = TestDatabase.empty()) {
			assertThat(empty.values(String.class, "select nspname from pg_catalog.pg_namespace"))
				.doesNotContain("pgque");
		}
	}

	@Test
	void loginIsNobodyElse() {
		TestDatabase.LoginRole login = this.injected.createLogin();
		assertThat(login.jdbc().queryForObject("select session_user::text", String.class)).isEqualTo(login.name());
		assertThatExceptionOfType(BadSqlGrammarException.class)
			.isThrownBy(() -> login.jdbc().execute("create schema not_allowed"))
			.havingCause()
			.withMessageContaining("permission denied");
	}

	@Test
	void poolEndsWithTheDatabase() {
		TestDatabase database = TestDatabase.empty();
		var pool = database.pool(2);
		database.close();
		assertThat(pool.isClosed()).isTrue();
		assertThat(this.injected.value(Boolean.class,
				"select exists (select from pg_catalog.pg_database where datname = ?)", database.name()))
			.isFalse();
	}

	@Nested
	class Inner {

		TestDatabase injected;

		@Test
		void nestedClassSharesTheDatabase(TestDatabase parameter) {
			assertThat(parameter).isSameAs(shared).isSameAs(this.injected);
		}

	}

}
