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

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for what all capture triggers have in common: their arguments, what they refuse,
 * and when they send nothing.
 */
@PgqueDatabase
class CaptureTriggerTests {

	TestDatabase database;

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void queueIsNeeded(String function) {
		CapturedTable table = new CapturedTable(this.database, "id int primary key");
		table.run("create trigger t before insert on $t for each row execute function pgque." + function + "()");
		SqlError error = SqlError.by(() -> table.run("insert into $t values (1)"));
		assertThat(error.message()).isEqualTo("Trigger needs queue name");
		assertThat(error.state()).isEqualTo("P0001");
	}

	@ParameterizedTest
	@ValueSource(strings = { "", "skipp", "Backup", "deny=", "pkey", "pkey=", "ignore=", "when=", "ev_type=",
			"ev_extra5=1", "ev_data=1", "skip=1", "pkey=nothing", "pkey=id,nothing" })
	void argumentsAreChecked(String argument) {
		CapturedTable table = new CapturedTable(this.database, "id int primary key").capture("jsontriga", argument);
		SqlError error = SqlError.by(() -> table.run("insert into $t values (1)"));
		assertThat(error.message()).isEqualTo("bad argument: " + argument);
		assertThat(error.state()).isEqualTo("P0001");
	}

	@Test
	void changeFailsWithItsEvent() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key");
		table.run("create trigger t after insert on $t for each row execute function pgque.jsontriga('nowhere')");
		assertThat(SqlError.by(() -> table.run("insert into $t values (1)")).message())
			.isEqualTo("queue not found: nowhere");
		assertThat(table.rows()).isZero();
	}

	@Test
	void eventIsRolledBackWithItsChange() {
		CapturedTable table = table("jsontriga");
		table.run("begin", "insert into $t values (1, 'a')", "savepoint s", "insert into $t values (2, 'b')",
				"rollback to s", "insert into $t values (3, 'c')", "commit", "begin", "delete from $t", "rollback");
		assertThat(table.events()).extracting(Event::data)
			.containsExactly("{\"id\":1,\"name\":\"a\"}", "{\"id\":3,\"name\":\"c\"}");
	}

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void changesOfRowsWithoutAKeyAreRefused(String function) {
		CapturedTable table = new CapturedTable(this.database, "a int, b int").capture(function);
		table.run("insert into $t values (1, 2)");
		for (String change : List.of("update $t set b = 3", "delete from $t")) {
			SqlError error = SqlError.by(() -> table.run(change));
			assertThat(error.message()).startsWith("Update/Delete on table without pkey");
			assertThat(error.state()).isEqualTo("P0001");
		}
		table.run("truncate $t");
		assertThat(table.events()).hasSize(2);
	}

	@Test
	void keyMayBeAnArgument() {
		CapturedTable table = new CapturedTable(this.database, "a int, b int, c int").capture("logutriga",
				"pkey=b , a");
		table.run("insert into $t values (1, 2, 3)", "update $t set c = 4", "delete from $t");
		assertThat(table.events()).extracting(Event::type).containsExactly("I:b,a", "U:b,a", "D:b,a");
		assertThat(SqlError.by(() -> table.run("insert into $t values (1, 2, 3)", "update $t set a = null")).message())
			.startsWith("primary key update not allowed");
	}

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void keyMustNotChange(String function) {
		CapturedTable table = table(function);
		table.run("insert into $t values (1, 'a')", "update $t set id = 1");
		SqlError error = SqlError.by(() -> table.run("update $t set id = 2"));
		assertThat(error.message()).startsWith("primary key update not allowed");
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(table.events()).hasSize(2);
	}

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void deniedTableDoesNotChange(String function) {
		CapturedTable table = new CapturedTable(this.database, "id int primary key, name text");
		table.run("insert into $t values (1, 'a')");
		table.capture(function, "deny");
		for (String change : List.of("insert into $t values (2, 'b')", "update $t set name = 'b'", "delete from $t",
				"truncate $t")) {
			SqlError error = SqlError.by(() -> table.run(change));
			assertThat(error.message()).startsWith("change not allowed");
			assertThat(error.state()).isEqualTo("P0001");
		}
		assertThat(table.rows()).isOne();
		assertThat(table.events()).isEmpty();
	}

	@Test
	void ignoredColumnsAreNoPartOfTheData() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key, a int, b int, c int")
			.capture("logutriga", "ignore=b, c,id,nothing");
		table.run("insert into $t values (1, 2, 3, 4)", "update $t set b = 5", "update $t set a = a",
				"update $t set b = 6, a = 7", "update $t set b = 7, c = 7");
		assertThat(table.events()).extracting(Event::type, Event::data)
			.containsExactly(tuple("I:id", "id=1&a=2"), tuple("U:id", "id=1&a=2"), tuple("U:id", "id=1&a=7"));
		assertThat(SqlError.by(() -> table.run("update $t set id = 2")).message())
			.startsWith("primary key update not allowed");
	}

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void updateThatChangesNothingIsAnEvent(String function) {
		CapturedTable table = table(function);
		table.run("insert into $t values (1, 'a')", "update $t set name = 'a'");
		assertThat(table.events()).hasSize(2);
	}

	@Test
	void conditionSeesTheRow() {
		CapturedTable table = table("logutriga", "when=name <> 'quiet' -- not null either");
		table.run("insert into $t values (1, 'quiet'), (2, 'loud'), (3, null)",
				"update $t set name = 'loud' where id = 1", "update $t set name = 'quiet' where id = 2",
				"delete from $t", "truncate $t");
		assertThat(table.events()).extracting(Event::type, Event::data)
			.containsExactly(tuple("I:id", "id=2&name=loud"), tuple("U:id", "id=1&name=loud"),
					tuple("D:id", "id=1&name=loud"));
	}

	@Test
	void fieldsMayBeExpressions() {
		CapturedTable table = table("logutriga", "ev_type=upper(name)", "ev_extra1=name || '=' || id",
				"ev_extra2=id + 1", "ev_extra3=null", "ev_extra4=id > 1", "backup");
		table.run("insert into $t values (1, 'a')", "update $t set name = 'b'", "delete from $t", "truncate $t");
		assertThat(table.events()).extracting(Event::type, Event::extra1, Event::extra2, Event::extra3, Event::extra4)
			.containsExactly(tuple("A", "a=1", "2", null, "false"), tuple("B", "b=1", "2", null, "false"),
					tuple("B", "b=1", "2", null, "false"), tuple(null, null, null, null, null));
	}

	@Test
	void expressionIsNotEvaluatedWhereTheConditionIsFalse() {
		CapturedTable table = table("logutriga", "when=id <> 0", "ev_extra3=10 / id");
		table.run("insert into $t values (0, 'a'), (5, 'b')");
		assertThat(table.events()).extracting(Event::extra3).containsExactly("2");
	}

	@Test
	void namesInExpressionsAreNotThoseOfTheSession() {
		this.database.execute("create schema mine; create function mine.upper(text) returns text language sql"
				+ " as $$ select 'shadow' $$; create function mine.hash(int) returns text language sql"
				+ " as $$ select 'hash' $$");
		CapturedTable table = table("logutriga", "ev_extra3=upper(name)", "ev_extra4=mine.hash(id)");
		table.run("set search_path = mine, pg_catalog, public", "insert into $t values (1, 'a')");
		assertThat(table.events()).extracting(Event::extra3, Event::extra4).containsExactly(tuple("A", "hash"));
		CapturedTable unqualified = table("logutriga", "ev_extra3=hash(id)");
		assertThat(
				SqlError.by(() -> unqualified.run("set search_path = mine, public", "insert into $t values (1, 'a')"))
					.state())
			.isEqualTo("42883");
	}

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void columnsOfTheEventAreNoPartOfTheData(String function) {
		CapturedTable table = new CapturedTable(this.database,
				"id int primary key, name text, _pgq_ev_type text, _pgq_ev_extra1 text, _pgq_ev_extra2 text,"
						+ " _pgq_ev_extra3 text, _pgq_ev_extra4 int")
			.capture(function, "ev_extra3='expression'");
		table.run("insert into $t values (1, 'a', 'type', 'x1', 'x2', 'x3', 4)", "insert into $t (id) values (2)",
				"delete from $t where id = 1");
		List<Event> events = table.events();
		assertThat(events).extracting(Event::extra1, Event::extra2, Event::extra3, Event::extra4)
			.containsExactly(tuple("x1", "x2", "x3", "4"), tuple("public." + table.name(), null, "expression", null),
					tuple("x1", "x2", "x3", "4"));
		assertThat(events).extracting(Event::type).contains("type", "type");
		assertThat(events).extracting(Event::data).noneMatch((data) -> data.contains("_pgq"));
		table.run("update $t set _pgq_ev_type = 'other'");
		assertThat(table.events()).hasSize(4).last().extracting(Event::type).isEqualTo("other");
	}

	@ParameterizedTest
	@ValueSource(strings = { "skip", "SKIP" })
	void skippedChangeIsAnEventOnly(String skip) {
		CapturedTable table = new CapturedTable(this.database, "id int primary key, name text");
		table.run("insert into $t values (1, 'a')");
		table.trigger("before insert or update or delete", "row", "logutriga", skip, "when=name <> 'quiet'");
		table.run("insert into $t values (2, 'b')", "update $t set name = 'c'", "delete from $t",
				"insert into $t values (3, 'quiet')");
		assertThat(table.rows()).isOne();
		assertThat(this.database.value(String.class, "select name from " + table.name())).isEqualTo("a");
		assertThat(table.events()).extracting(Event::type, Event::data)
			.containsExactly(tuple("I:id", "id=2&name=b"), tuple("U:id", "id=1&name=c"), tuple("D:id", "id=1&name=a"));
	}

	@ParameterizedTest
	@ValueSource(strings = { "after insert|row", "before truncate|statement", "after truncate|statement" })
	void onlyChangesOfRowsThatAreToComeCanBeSkipped(String trigger) {
		CapturedTable table = new CapturedTable(this.database, "id int primary key");
		table.trigger(trigger.split("\\|")[0], trigger.split("\\|")[1], "jsontriga", "skip");
		assertThat(SqlError.by(() -> table.run("insert into $t values (1)", "truncate $t")).message())
			.isEqualTo("bad argument: skip");
	}

	@Test
	void changeTakesPlaceAfterABeforeTrigger() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key, name text")
			.trigger("before insert or update or delete", "row", "logutriga")
			.trigger("before truncate", "statement", "logutriga");
		table.run("insert into $t values (1, 'a'), (2, 'a')", "update $t set name = 'b' where id = 1",
				"delete from $t where id = 2");
		assertThat(this.database.values(String.class, "select t::text from %s t".formatted(table.name())))
			.containsExactly("(1,b)");
		table.run("truncate $t");
		assertThat(table.rows()).isZero();
		assertThat(table.events()).extracting(Event::type).containsExactly("I:id", "I:id", "U:id", "D:id", "R");
	}

	@Test
	void changesOfAViewAreEvents() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key, name text");
		table.run("insert into $t values (1, 'a')", "create view $t_view as select * from $t");
		table.run("create trigger t instead of insert or update or delete on $t_view for each row"
				+ " execute function pgque.logutriga(%s)".formatted(CapturedTable.arguments(table.queue(), "pkey=id")));
		table.run("insert into $t_view values (2, 'b')", "update $t_view set name = 'c'", "delete from $t_view");
		assertThat(table.rows()).isOne();
		assertThat(table.events()).extracting(Event::type, Event::data, Event::extra1)
			.containsExactly(tuple("I:id", "id=2&name=b", "public." + table.name() + "_view"),
					tuple("U:id", "id=1&name=c", "public." + table.name() + "_view"),
					tuple("D:id", "id=1&name=a", "public." + table.name() + "_view"));
	}

	@Test
	void partitionsSpeakForThemselves() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key, name text) partition by list (id");
		table.run("create table $t_1 partition of $t for values in (1)",
				"create table $t_2 (name text, id int primary key)",
				"alter table $t attach partition $t_2 for values in (2)");
		table.trigger("after insert or update or delete", "row", "logutriga");
		table.run("insert into $t values (1, 'a'), (2, 'b')");
		assertThat(table.events()).extracting(Event::data, Event::extra1)
			.containsExactly(tuple("id=1&name=a", "public." + table.name() + "_1"),
					tuple("name=b&id=2", "public." + table.name() + "_2"));
	}

	@Test
	void triggerForAStatementSeesNoRows() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key").trigger("after insert",
				"statement", "jsontriga");
		assertThat(SqlError.by(() -> table.run("insert into $t values (1)")).message())
			.startsWith("Trigger must be for each row");
	}

	@Test
	void nothingHappensInTheRoleLocal() {
		CapturedTable table = new CapturedTable(this.database, "id int primary key, name text")
			.trigger("before insert", "row", "jsontriga", "skip")
			.trigger("after insert or update", "row", "jsontriga", "deny")
			.capture("sqltriga");
		table.run("set session_replication_role = local", "insert into $t values (1, 'a')", "update $t set id = 2",
				"delete from $t", "truncate $t", "insert into $t values (3, 'a')");
		assertThat(table.events()).isEmpty();
		assertThat(table.rows()).isOne();
	}

	@Test
	void replicaSendsWhereTheTriggerIsToFireAlways() {
		CapturedTable table = table("jsontriga");
		table.run("set session_replication_role = replica", "insert into $t values (1, 'a')");
		assertThat(table.events()).isEmpty();
		table.run("alter table $t enable always trigger t1", "set session_replication_role = replica",
				"insert into $t values (2, 'b')");
		assertThat(table.events()).hasSize(1);
	}

	@ParameterizedTest
	@ValueSource(strings = { "jsontriga", "logutriga", "sqltriga" })
	void oneSessionChangesManyTables(String function) {
		CapturedTable first = table(function);
		CapturedTable second = new CapturedTable(this.database, "id bigint primary key, at timestamptz, ok boolean")
			.capture(function);
		JdbcTemplate session = new JdbcTemplate(this.database.pool(1));
		for (int i = 0; i < 12; i++) {
			first.run(session, "insert into $t values (1, 'a')", "update $t set name = 'b'", "delete from $t");
			second.run(session, "truncate $t", "insert into $t values (1)", "update $t set ok = true");
		}
		assertThat(first.events()).hasSize(36);
		assertThat(second.events()).hasSize(36);
	}

	private CapturedTable table(String function, String... arguments) {
		return new CapturedTable(this.database, "id int primary key, name text").capture(function, arguments);
	}

}
