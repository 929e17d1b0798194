package io.pgque.engine;

import java.sql.Statement;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

import org.springframework.jdbc.core.ConnectionCallback;
import org.springframework.jdbc.core.JdbcTemplate;

import io.pgque.testsupport.TestDatabase;

/**
 * A table whose changes go to a queue of its own. In statements, {@code $t} stands for
 * its name.
 */
final class CapturedTable {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	private final TestDatabase database;

	private final String name;

	private final String queue;

	private final AtomicInteger triggers = new AtomicInteger();

	/**
	 * Create a table without a trigger.
	 * @param columns what stands in the parentheses of the statement
	 */
	CapturedTable(TestDatabase database, String columns) {
		int number = NUMBER.incrementAndGet();
		this.database = database;
		this.name = "captured_" + number;
		this.queue = "changes_" + number;
		database.value(Integer.class, "select pgque.create_queue(?)", this.queue);
		run("create table $t (" + columns + ")");
	}

	String name() {
		return this.name;
	}

	String queue() {
		return this.queue;
	}

	/**
	 * Capture all changes after they were made, TRUNCATE included.
	 * @param function such as {@code jsontriga}
	 * @param arguments those after the queue
	 */
	CapturedTable capture(String function, String... arguments) {
		trigger("after insert or update or delete", "row", function, arguments);
		trigger("after truncate", "statement", function, arguments);
		return this;
	}

	/**
	 * Add a trigger.
	 * @param events such as {@code before insert}
	 * @param level row or statement
	 */
	CapturedTable trigger(String events, String level, String function, String... arguments) {
		run("create trigger t%d %s on $t for each %s execute function pgque.%s(%s)"
			.formatted(this.triggers.incrementAndGet(), events, level, function, arguments(this.queue, arguments)));
		return this;
	}

	static String arguments(String queue, String... others) {
		return Arrays.stream(others)
			.map((argument) -> ", '" + argument.replace("'", "''") + "'")
			.collect(Collectors.joining("", "'" + queue + "'", ""));
	}

	/**
	 * Run statements in one session, each a transaction of its own unless they say
	 * otherwise.
	 */
	void run(String... statements) {
		run(this.database.jdbc(), statements);
	}

	void run(JdbcTemplate user, String... statements) {
		ConnectionCallback<@Nullable Void> callback = (connection) -> {
			try (Statement statement = connection.createStatement()) {
				for (String sql : statements) {
					statement.execute(sql.replace("$t", this.name));
				}
			}
			return null;
		};
		user.execute(callback);
	}

	/**
	 * Run statements in a transaction whose settings write values in other ways than they
	 * do by default. The driver takes such settings only while it doesn't see them.
	 */
	void runWithOtherFormats(String... statements) {
		run("""
				do $do$
				begin
				    set local timezone = 'UTC';
				    set local datestyle = 'SQL, DMY';
				    set local intervalstyle = 'iso_8601';
				    set local extra_float_digits = -10;
				    set local bytea_output = 'escape';
				    set local search_path = pg_temp, public;
				    %s;
				end
				$do$
				""".formatted(String.join("; ", statements)));
	}

	long rows() {
		return this.database.value(Long.class, "select count(*) from " + this.name);
	}

	/**
	 * Return the events sent so far.
	 */
	List<Event> events() {
		Integer id = this.database.value(Integer.class, "select queue_id from pgque.queue where queue_name = ?",
				this.queue);
		return this.database.jdbc()
			.query("select ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4 from pgque.event_" + id
					+ " order by ev_id",
					(row, number) -> new Event(row.getString(1), row.getString(2), row.getString(3), row.getString(4),
							row.getString(5), row.getString(6)));
	}

	/**
	 * The parts of an event that a trigger sets.
	 */
	record Event(String type, String data, String extra1, String extra2, String extra3, String extra4) {

	}

}
