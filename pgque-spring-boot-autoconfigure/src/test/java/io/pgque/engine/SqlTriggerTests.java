package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.Test;

import io.pgque.engine.CapturedTable.Event;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for what {@code sqltriga} makes of changes; what all capture triggers have in
 * common is in {@link CaptureTriggerTests}.
 */
@PgqueDatabase
class SqlTriggerTests {

	TestDatabase database;

	@Test
	void everyOperationHasItsTypeAndData() {
		CapturedTable table = table("id int primary key, a text, b int");
		table.run("insert into $t values (1, 'x', null)", "update $t set a = 'y', b = 2", "update $t set b = null",
				"delete from $t", "truncate $t");
		assertThat(table.events()).extracting(Event::type, Event::data)
			.containsExactly(tuple("I", "(id,a,b) values ('1','x',null)"), tuple("U", "a='y',b='2' where id='1'"),
					tuple("U", "b=null where id='1'"), tuple("D", "id='1'"), tuple("R", ""));
		assertThat(table.events()).extracting(Event::extra1).containsOnly("public." + table.name());
	}

	@Test
	void updateThatChangesNothingSetsTheKey() {
		CapturedTable table = table("a int, b int, c int, primary key (b, a)");
		table.run("insert into $t values (1, 2, 3)", "update $t set c = 3");
		assertThat(table.events().get(1).data()).isEqualTo("a='1',b='2' where b='2' and a='1'");
		CapturedTable simple = table("id int primary key");
		simple.run("insert into $t values (1)", "update $t set id = 1");
		assertThat(simple.events().get(1).data()).isEqualTo("id='1' where id='1'");
	}

	@Test
	void namesAndValuesAreQuoted() {
		CapturedTable table = table("\"Id\" int primary key, \"select\" text");
		table.run("insert into $t values (1, 'it''s \\ 1')", "update $t set \"select\" = ''");
		assertThat(table.events()).extracting(Event::data)
			.containsExactly("(\"Id\",\"select\") values ('1',E'it''s \\\\ 1')", "\"select\"='' where \"Id\"='1'");
	}

	@Test
	void keyOfTheArgumentMayBeNull() {
		CapturedTable table = table("a int, b int, c int", "pkey=a, b");
		table.run("insert into $t values (1, null, 3)", "update $t set c = 4", "update $t set c = 4", "delete from $t");
		assertThat(table.events()).extracting(Event::data)
			.containsExactly("(a,b,c) values ('1',null,'3')", "c='4' where a='1' and b is null",
					"a='1',b=null where a='1' and b is null", "a='1' and b is null");
	}

	@Test
	void generatedColumnsAreNotWritten() {
		CapturedTable table = table("id int primary key, a int, twice int generated always as (a * 2) stored");
		table.run("insert into $t values (1, 2)", "update $t set a = 3");
		assertThat(table.events()).extracting(Event::data)
			.containsExactly("(id,a) values ('1','2')", "a='3' where id='1'");
	}

	@Test
	void backupIsTheRowBeforeAnUpdate() {
		CapturedTable table = table("id int primary key, a text", "backup");
		table.run("insert into $t values (1, 'x')", "update $t set a = 'y'", "delete from $t", "truncate $t");
		assertThat(table.events()).extracting(Event::extra2)
			.containsExactly(null, "(id,a) values ('1','x')", null, null);
	}

	@Test
	void eventsBuildACopyOfTheTable() {
		CapturedTable table = table(
				"id int primary key, a text, b timestamptz, c float8, d numeric[], e bytea, f interval");
		table.runWithOtherFormats("""
				insert into $t
				select n, E'\\'\\\\' || n, now(), 1 / 3.0::float8, array[n, null], '\\x00', '-1 day -2 hours'
				from generate_series(1, 20) n
				""", "update $t set a = null where id % 2 = 0", "update $t set c = c * 3, f = f * 2 where id % 3 = 0",
				"delete from $t where id > 15");
		this.database.execute("create table copy (like %s)".formatted(table.name()));
		for (Event event : table.events()) {
			this.database.execute(switch (event.type()) {
				case "I" -> "insert into copy " + event.data();
				case "U" -> "update copy set " + event.data();
				default -> "delete from copy where " + event.data();
			});
		}
		assertThat(rows("copy")).hasSize(15).isEqualTo(rows(table.name()));
	}

	private List<String> rows(String table) {
		return this.database.values(String.class, "select t::text from %s t order by id".formatted(table));
	}

	private CapturedTable table(String columns, String... arguments) {
		return new CapturedTable(this.database, columns).capture("sqltriga", arguments);
	}

}
