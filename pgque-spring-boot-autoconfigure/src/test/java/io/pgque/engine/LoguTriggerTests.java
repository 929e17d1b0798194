package io.pgque.engine;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;

import org.junit.jupiter.api.Test;

import io.pgque.engine.CapturedTable.Event;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for what {@code logutriga} makes of changes; what all capture triggers have in
 * common is in {@link CaptureTriggerTests}.
 */
@PgqueDatabase
class LoguTriggerTests {

	TestDatabase database;

	@Test
	void everyOperationHasItsTypeAndData() {
		CapturedTable table = table("a int, b text, c text, primary key (b, a)");
		table.run("insert into $t values (1, 'k', 'x')", "update $t set c = 'y'", "delete from $t", "truncate $t");
		assertThat(table.events()).extracting(Event::type, Event::data, Event::extra1)
			.containsExactly(tuple("I:b,a", "a=1&b=k&c=x", "public." + table.name()),
					tuple("U:b,a", "a=1&b=k&c=y", "public." + table.name()),
					tuple("D:b,a", "a=1&b=k&c=y", "public." + table.name()), tuple("R", "", "public." + table.name()));
	}

	@Test
	void tableWithoutAKeyHasAnEmptyOne() {
		CapturedTable table = table("a int");
		table.run("insert into $t values (1)");
		assertThat(table.events()).extracting(Event::type).containsExactly("I:");
	}

	@Test
	void nullIsANameAndBooleansAreLetters() {
		CapturedTable table = table("id int primary key, a text, b text, c boolean, d boolean, e numeric");
		table.run("insert into $t values (1, null, '', true, false, 1.50)");
		assertThat(table.events()).extracting(Event::data).containsExactly("id=1&a&b=&c=t&d=f&e=1.50");
	}

	@Test
	void namesAndValuesAreEncoded() {
		CapturedTable table = table("\"i d\" int primary key, \"a=b\" text");
		table.run("insert into $t values (1, 'x y&z=1%+ü-_.~\"')");
		assertThat(table.events()).extracting(Event::type, Event::data)
			.containsExactly(tuple("I:i d", "i+d=1&a%3db=x+y%26z%3d1%25%2b%c3%bc-_.%7e%22"));
		String value = table.events().get(0).data().split("=")[2];
		assertThat(URLDecoder.decode(value, StandardCharsets.UTF_8)).isEqualTo("x y&z=1%+ü-_.~\"");
	}

	@Test
	void pointsInTimeAreAsTheServerReadsThem() {
		CapturedTable table = table("id int primary key, a timestamptz, b date");
		table.runWithOtherFormats("insert into $t values (1, '2024-02-29 01:02:03+00', '29.02.2024')");
		assertThat(table.events()).extracting(Event::data)
			.containsExactly("id=1&a=2024-02-29+01%3a02%3a03%2b00&b=2024-02-29");
	}

	@Test
	void backupIsTheRowBeforeAnUpdate() {
		CapturedTable table = table("id int primary key, a text", "backup");
		table.run("insert into $t values (1, null)", "update $t set a = 'new'", "delete from $t", "truncate $t");
		assertThat(table.events()).extracting(Event::data, Event::extra2)
			.containsExactly(tuple("id=1&a", null), tuple("id=1&a=new", "id=1&a"), tuple("id=1&a=new", null),
					tuple("", null));
	}

	private CapturedTable table(String columns, String... arguments) {
		return new CapturedTable(this.database, columns).capture("logutriga", arguments);
	}

}
