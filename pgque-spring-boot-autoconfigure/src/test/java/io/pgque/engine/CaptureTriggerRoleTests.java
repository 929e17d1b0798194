package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.jdbc.core.JdbcTemplate;

import io.pgque.engine.CapturedTable.Event;
import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import io.pgque.testsupport.TestDatabase.LoginRole;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Who may create capture triggers, and whose changes they capture.
 */
@PgqueDatabase
class CaptureTriggerRoleTests {

	TestDatabase database;

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void writerOfTheTableSendsWhatAnAdministratorCaptures(String function) {
		CapturedTable table = new CapturedTable(this.database, "id int primary key, name text");
		LoginRole admin = this.database.createLogin("pgque_admin");
		LoginRole owner = this.database.createLogin("pgque_writer");
		LoginRole writer = this.database.createLogin("pgque_writer");
		table.run("alter table $t owner to " + owner.name(), "grant trigger on $t to " + admin.name(),
				"grant select, insert, update, delete, truncate on $t to " + writer.name());
		table.run(admin.jdbc(),
				"create trigger t after insert or update or delete on $t for each row execute function pgque."
						+ function
						+ "(%s)".formatted(CapturedTable.arguments(table.queue(), "backup", "when=id > 0",
								"ev_extra3=current_user")),
				"create trigger u after truncate on $t for each statement execute function pgque." + function
						+ "(%s)".formatted(CapturedTable.arguments(table.queue())));
		String[] changes = { "insert into $t values (1, 'a b')", "update $t set name = 'c'", "delete from $t",
				"truncate $t" };
		table.run(writer.jdbc(), changes);
		table.run(owner.jdbc(), changes);
		assertThat(table.events()).extracting(Event::extra3)
			.containsExactly(writer.name(), writer.name(), writer.name(), null, owner.name(), owner.name(),
					owner.name(), null);
	}

	@Test
	void changeOfSomebodyWhoMayNotSendIsRefused() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key").capture("jsontriga");
		for (LoginRole role : List.of(this.database.createLogin(), this.database.createLogin("pgque_reader"))) {
			table.run("grant insert on $t to " + role.name());
			assertThat(SqlError.by(() -> table.run(role.jdbc(), "insert into $t values (1)")).state())
				.isEqualTo("42501");
		}
		assertThat(table.rows()).isZero();
	}

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void triggersAreCreatedByAdministratorsOnly(String function) {
		CapturedTable table = new CapturedTable(this.database, "id int primary key");
		for (String member : List.of("pgque_reader", "pgque_writer")) {
			LoginRole role = this.database.createLogin(member);
			table.run("alter table $t owner to " + role.name());
			assertThat(SqlError.by(() -> table.run(role.jdbc(),
					"create trigger t after insert on $t for each row execute function pgque." + function + "('q')"))
				.state()).isEqualTo("42501");
		}
	}

	@Test
	void writerMayCallNothingElseThatIsInternal() {
		LoginRole writer = this.database.createLogin("pgque_writer");
		assertThat(this.database.values(String.class, """
				select distinct p.proname::text from pg_catalog.pg_proc p
				where p.pronamespace = 'pgque_internal'::regnamespace
				  and has_function_privilege(?, p.oid, 'execute') and p.proname not like 'capture%'
				""", writer.name())).isEmpty();
		assertThat(this.database.values(String.class, """
				select c.relname::text from pg_catalog.pg_class c
				where c.relnamespace = 'pgque_internal'::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
				  and case c.relkind when 'S' then has_sequence_privilege(?, c.oid, 'select, usage, update')
				           else has_table_privilege(?, c.oid, 'select, insert, update, delete, truncate') end
				""", writer.name(), writer.name())).isEmpty();
		assertThat(this.database.value(Boolean.class, "select has_schema_privilege(?, 'pgque_internal', 'create')",
				writer.name()))
			.isFalse();
	}

	@Test
	void expressionRunsWithTheRightsOfTheWriter() {
		this.database.execute("create table secret (a int)");
		CapturedTable table = new CapturedTable(this.database, "id int primary key").capture("jsontriga",
				"ev_extra3=(select count(*) from public.secret)");
		LoginRole writer = this.database.createLogin("pgque_writer");
		table.run("grant insert on $t to " + writer.name());
		assertThat(SqlError.by(() -> table.run(writer.jdbc(), "insert into $t values (1)")).state()).isEqualTo("42501");
	}

	@Test
	void overloadsOfAnAdministratorAreNotCalled() {
		JdbcTemplate admin = this.database.createLogin("pgque_admin").jdbc();
		for (String overload : List.of("insert_event(text, text, text, text, text, text, varchar)",
				"insert_event(varchar, text, text, text, text, text, text)", "_urlencode(varchar)", "_urlencode(name)",
				"capture(text, text[], text, text, text, oid, text, text, anyelement, anyelement)")) {
			admin.execute("create function pgque." + overload
					+ " returns text language plpgsql as $$ begin raise exception 'called'; end $$");
		}
		for (String function : List.of("jsontriga", "logutriga", "sqltriga")) {
			CapturedTable table = new CapturedTable(this.database, "id int primary key, name text").capture(function);
			table.run("insert into $t values (1, 'a b')", "update $t set name = 'c'", "delete from $t", "truncate $t");
			assertThat(table.events()).hasSize(4);
		}
	}

	@Test
	void triggersRunWithTheRightsOfTheWriter() {
		assertThat(this.database.values(Boolean.class, """
				select p.prosecdef from pg_catalog.pg_proc p
				where p.pronamespace = 'pgque'::regnamespace and p.proname in ('jsontriga', 'logutriga', 'sqltriga')
				   or p.pronamespace = 'pgque_internal'::regnamespace and p.proname like 'capture%'
				""")).hasSizeGreaterThan(10).containsOnly(false);
	}

}
