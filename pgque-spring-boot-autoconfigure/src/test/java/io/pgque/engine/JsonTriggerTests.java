package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;

import io.pgque.engine.CapturedTable.Event;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.PostgresServer;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for what {@code jsontriga} makes of changes; what all capture triggers have in
 * common is in {@link CaptureTriggerTests}.
 */
@PgqueDatabase
class JsonTriggerTests {

	TestDatabase database;

	@Test
	void everyOperationHasItsTypeAndData() {
		CapturedTable table = table("id int primary key, name text");
		table.run("insert into $t values (1, 'a')", "update $t set name = 'b'", "delete from $t", "truncate $t");
		assertThat(table.events()).extracting(Event::type, Event::data)
			.containsExactly(tuple(type(table, "INSERT", "\"id\""), "{\"id\":1,\"name\":\"a\"}"),
					tuple(type(table, "UPDATE", "\"id\""), "{\"id\":1,\"name\":\"b\"}"),
					tuple(type(table, "DELETE", "\"id\""), "{\"id\":1,\"name\":\"b\"}"),
					tuple(type(table, "TRUNCATE", "\"id\""), "{}"));
		assertThat(table.events()).extracting(Event::extra1, Event::extra2, Event::extra3, Event::extra4)
			.containsOnly(tuple("public." + table.name(), null, null, null));
	}

	@Test
	void wholeNumbersAndBooleansAreNative() {
		assertThat(data("a int2, b int4, c int8, d boolean, e boolean", "1, -2, 9223372036854775807, true, false"))
			.isEqualTo("{\"a\":1,\"b\":-2,\"c\":9223372036854775807,\"d\":true,\"e\":false}");
	}

	@Test
	void otherNumbersAreStrings() {
		assertThat(data("a numeric, b float8, c float4, d numeric", "1.50, 0.1, 'NaN', 'NaN'"))
			.isEqualTo("{\"a\":\"1.50\",\"b\":\"0.1\",\"c\":\"NaN\",\"d\":\"NaN\"}");
	}

	@Test
	void pointsInTimeAreIso() {
		assertThat(data("a timestamp, b timestamptz, c date, d time, e interval, f timestamp",
				"'2024-02-29 01:02:03.45', '2024-02-29 01:02:03+00', '2024-02-29', '01:02:03', '1 day 2 hours', 'infinity'"))
			.isEqualTo("{\"a\":\"2024-02-29T01:02:03.45\",\"b\":\"2024-02-29T01:02:03+00:00\",\"c\":\"2024-02-29\","
					+ "\"d\":\"01:02:03\",\"e\":\"1 day 02:00:00\",\"f\":\"infinity\"}");
	}

	@Test
	void everythingElseIsTheTextOfItsType() {
		this.database.execute("create type pair as (a int, b text)");
		assertThat(data("a int[], b pair, c pair, d jsonb, e char(3), f inet, g bytea, h uuid",
				"'{1,null}', row(null, 'x'), row(null, null), '{\"x\": [1]}', 'y', '10.0.0.1', '\\x00ff', null"))
			.isEqualTo("{\"a\":\"{1,NULL}\",\"b\":\"(,x)\",\"c\":\"(,)\",\"d\":\"{\\\"x\\\": [1]}\",\"e\":\"y  \","
					+ "\"f\":\"10.0.0.1\",\"g\":\"\\\\x00ff\",\"h\":null}");
	}

	@Test
	void domainsAreWhatTheyAreBasedOn() {
		this.database.execute("create domain positive as int check (value > 0);"
				+ " create domain small as positive check (value < 10); create domain moment as timestamp;"
				+ " create domain flag as boolean; create domain price as numeric");
		assertThat(data("a small, b moment, c flag, d price", "3, '2024-01-01 00:00:00', true, 1.0"))
			.isEqualTo("{\"a\":3,\"b\":\"2024-01-01T00:00:00\",\"c\":true,\"d\":\"1.0\"}");
	}

	@Test
	void namesAndValuesAreEscaped() {
		CapturedTable table = table("\"I \"\"d\" int primary key, \"grüße\" text");
		table.run("insert into $t values (1, E'a\"b\\\\c\\n\\u00fc')");
		assertThat(table.events()).singleElement().satisfies((event) -> {
			assertThat(event.type()).isEqualTo(type(table, "INSERT", "\"I \\\"d\""));
			assertThat(event.data()).isEqualTo("{\"I \\\"d\":1,\"grüße\":\"a\\\"b\\\\c\\nü\"}");
			assertThat(this.database.value(String.class, "select ?::jsonb ->> 'grüße'", event.data()))
				.isEqualTo("a\"b\\c\nü");
		});
	}

	@Test
	void textDoesNotDependOnTheSession() {
		CapturedTable table = table("id int primary key, a timestamptz, b float8, c interval, d bytea, e date");
		table.runWithOtherFormats(
				"insert into $t values (1, '2024-02-29 01:02:03+00', 0.1::float8 + 0.2, '1 day', '\\x00', '01/02/2024')");
		assertThat(table.events()).singleElement()
			.extracting(Event::data)
			.isEqualTo("{\"id\":1,\"a\":\"2024-02-29T01:02:03+00:00\",\"b\":\"0.30000000000000004\",\"c\":\"1 day\","
					+ "\"d\":\"\\\\x00\",\"e\":\"2024-02-01\"}");
	}

	@Test
	void keyIsInTheOrderOfThePrimaryKey() {
		CapturedTable table = table("x int, a int, b int, c text, primary key (b, a) include (c)");
		table.run("alter table $t rename a to z", "insert into $t values (1, 2, 3)");
		assertThat(table.events()).extracting(Event::type).containsExactly(type(table, "INSERT", "\"b\",\"z\""));
	}

	@Test
	void tableWithoutAKeyHasAnEmptyOne() {
		CapturedTable table = table("a int");
		table.run("insert into $t values (1)", "truncate $t");
		assertThat(table.events()).extracting(Event::type)
			.containsExactly(type(table, "INSERT", ""), type(table, "TRUNCATE", ""));
	}

	@Test
	void backupIsTheRowBeforeAnUpdate() {
		CapturedTable table = table("id int primary key, a text, b int", "backup", "ignore=b");
		table.run("insert into $t values (1, 'old', 1)", "update $t set a = 'new', b = 2", "delete from $t",
				"truncate $t");
		assertThat(table.events()).extracting(Event::data, Event::extra2)
			.containsExactly(tuple("{\"id\":1,\"a\":\"old\"}", null),
					tuple("{\"id\":1,\"a\":\"new\"}", "{\"id\":1,\"a\":\"old\"}"),
					tuple("{\"id\":1,\"a\":\"new\"}", null), tuple("{}", null));
	}

	@Test
	void storedGeneratedColumnsAreThereAfterTheChange() {
		CapturedTable table = table("id int primary key, twice int generated always as (id * 2) stored");
		table.trigger("before insert or delete", "row", "jsontriga", "ev_type='before'");
		table.run("insert into $t values (4)", "delete from $t");
		assertThat(table.events()).extracting(Event::data)
			.containsExactly("{\"id\":4}", "{\"id\":4,\"twice\":8}", "{\"id\":4}", "{\"id\":4,\"twice\":8}");
	}

	@Test
	@EnabledIf("virtualColumns")
	void virtualColumnsAreLeftOut() {
		CapturedTable table = table("id int primary key, twice int generated always as (id * 2) virtual, c int");
		table.run("insert into $t (id) values (4)");
		assertThat(table.events()).extracting(Event::data).containsExactly("{\"id\":4,\"c\":null}");
	}

	@Test
	void droppedAndAddedColumnsAreFollowedInAnOpenSession() {
		CapturedTable table = table("id int primary key, a int, b int");
		table.run("insert into $t values (1, 2, 3)", "alter table $t drop a", "insert into $t values (2, 3)",
				"alter table $t add c text default 'new'", "update $t set b = 4 where id = 2",
				"alter table $t alter b type numeric", "delete from $t where id = 1");
		assertThat(table.events()).extracting(Event::data)
			.containsExactly("{\"id\":1,\"a\":2,\"b\":3}", "{\"id\":2,\"b\":3}", "{\"id\":2,\"b\":4,\"c\":\"new\"}",
					"{\"id\":1,\"b\":\"3\",\"c\":\"new\"}");
	}

	@Test
	void eventIsDelivered() {
		CapturedTable table = table("id int primary key");
		this.database.query("select pgque.subscribe(?, 'reader')", table.queue());
		table.run("insert into $t values (1)");
		this.database.query("select * from pgque.tick_now(array[?])", table.queue());
		List<String> payloads = this.database.values(String.class, "select payload from pgque.receive(?, 'reader')",
				table.queue());
		assertThat(payloads).containsExactly("{\"id\":1}");
	}

	static boolean virtualColumns() {
		return PostgresServer.shared().majorVersion() >= 18;
	}

	private CapturedTable table(String columns, String... arguments) {
		return new CapturedTable(this.database, columns).capture("jsontriga", arguments);
	}

	private String data(String columns, String values) {
		CapturedTable table = table(columns);
		table.run("set timezone = 'UTC'", "insert into $t values (" + values + ")");
		return table.events().get(0).data();
	}

	private static String type(CapturedTable table, String operation, String key) {
		return "{\"op\":\"%s\",\"table\":[\"public\",\"%s\"],\"pkey\":[%s]}".formatted(operation, table.name(), key);
	}

}
