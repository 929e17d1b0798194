package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.jdbc.core.JdbcTemplate;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.TestDatabase;
import io.pgque.testsupport.TestDatabase.LoginRole;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for the end of the engine.
 */
class UninstallTests {

	private TestDatabase database;

	@BeforeEach
	void createDatabase() {
		this.database = TestDatabase.migrated();
	}

	@AfterEach
	void dropDatabase() {
		this.database.close();
	}

	@Test
	void everythingGoesButTheRoles() {
		this.database.query("select pgque.create_queue('orders'), pgque.create_queue('other')");
		this.database.query("select pgque.subscribe('orders', 'reader'), pgque.send('orders', 'x')");
		this.database.createLogin("pgque_admin")
			.jdbc()
			.execute("create function pgque.hook(text) returns int language sql as $$ select 1 $$");
		uninstall();
		assertThat(schemas()).isEmpty();
		assertThat(this.database.values(String.class,
				"select rolname from pg_catalog.pg_roles where rolname like 'pgque\\_%' order by rolname"))
			.contains("pgque_admin", "pgque_reader", "pgque_writer");
	}

	@Test
	void capturedTablesStay() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key").capture("jsontriga");
		table.run("insert into $t values (1)");
		uninstall();
		table.run("insert into $t values (2)");
		assertThat(table.rows()).isEqualTo(2);
	}

	@Test
	void engineCanBeInstalledAgain() {
		this.database.query("select pgque.create_queue('orders')");
		uninstall();
		this.database.execute(EngineScript.statements());
		assertThat(this.database.values(String.class, "select queue_name from pgque.queue")).isEmpty();
		assertThat(this.database.value(Integer.class, "select pgque.create_queue('orders')")).isOne();
	}

	@Test
	void jobsGoFirst() {
		FakeScheduler.installCron(this.database, "1.6");
		this.database.query("select pgque.start()");
		uninstall();
		assertThat(this.database.values(String.class, "select jobname from cron.job")).isEmpty();
		assertThat(schemas()).isEmpty();
	}

	@Test
	void jobsOfTheOtherSchedulerGoFirst() {
		FakeScheduler.installTimetable(this.database, 12);
		this.database.query("select pgque.start_timetable()");
		uninstall();
		assertThat(this.database.values(String.class, "select chain_name from timetable.chain")).isEmpty();
		assertThat(schemas()).isEmpty();
	}

	@Test
	void nothingGoesWhereStoppingFails() {
		this.database.execute("create or replace function pgque.stop() returns void language plpgsql"
				+ " as $$ begin raise exception 'cannot stop'; end $$");
		assertThat(SqlError.by(this::uninstall).message()).isEqualTo("cannot stop");
		assertThat(schemas()).containsExactly("pgque", "pgque_internal");
		assertThat(this.database.value(Integer.class, "select pgque.create_queue('orders')")).isOne();
	}

	@Test
	void extensionIsDroppedAsSuch() {
		this.database.execute("alter extension plpgsql add schema pgque");
		SqlError error = SqlError.by(this::uninstall);
		assertThat(error.message()).contains("drop extension plpgsql cascade");
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(schemas()).containsExactly("pgque", "pgque_internal");
	}

	@ParameterizedTest
	@ValueSource(strings = { "pgque_reader", "pgque_writer", "pgque_admin" })
	void rolesMayNotUninstall(String member) {
		JdbcTemplate user = this.database.createLogin(member).jdbc();
		assertThat(SqlError.by(() -> user.queryForList("select pgque.uninstall()")).state()).isEqualTo("42501");
		assertThat(schemas()).containsExactly("pgque", "pgque_internal");
	}

	@Test
	void ownerNeedsNoSuperuser() {
		uninstall();
		LoginRole owner = this.database.createLogin();
		this.database.execute("grant create on database %s to %s".formatted(this.database.name(), owner.name()));
		JdbcTemplate jdbc = owner.jdbc();
		jdbc.execute(EngineScript.statements());
		FakeScheduler.installTimetable(this.database, 12);
		for (String object : List.of("schema timetable", "function timetable.add_job", "function timetable.delete_job",
				"table timetable.chain", "domain timetable.cron", "type timetable.command_kind")) {
			this.database.execute("alter %s owner to %s".formatted(object, owner.name()));
		}
		jdbc.queryForList("select pgque.create_queue('orders'), pgque.start_timetable()");
		jdbc.queryForList("select pgque.uninstall()");
		assertThat(schemas()).isEmpty();
		assertThat(this.database.values(String.class, "select chain_name from timetable.chain")).isEmpty();
	}

	private void uninstall() {
		this.database.query("select pgque.uninstall()");
	}

	private List<String> schemas() {
		return this.database.values(String.class,
				"select nspname from pg_catalog.pg_namespace where nspname like 'pgque%' order by nspname");
	}

}
