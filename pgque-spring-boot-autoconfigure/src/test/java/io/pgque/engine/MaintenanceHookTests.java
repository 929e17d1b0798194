package io.pgque.engine;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for the functions that {@code maint()} runs for a queue.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class MaintenanceHookTests {

	private final Engine engine;

	private final String foreigner;

	private final String queue;

	MaintenanceHookTests(TestDatabase database) {
		this.engine = new Engine(database);
		this.foreigner = database.createLogin().name();
		this.queue = this.engine.queue();
		this.engine.execute("create table public.called (hook text, queue text, called_by text)");
		this.engine.execute("grant insert on public.called to public");
		for (String hook : new String[] { "pgque.hook", "public.\"Odd hook\"", "pgque.foreign_hook" }) {
			this.engine.execute("create function %s(i_queue text) returns integer language sql as $$".formatted(hook)
					+ "insert into public.called values ('%s', i_queue, current_user) returning 7 $$".formatted(hook));
		}
		this.engine.execute("alter function pgque.foreign_hook(text) owner to " + this.foreigner);
		this.engine.execute("create function pgque.failing_hook(text) returns integer language plpgsql as"
				+ " $$ begin raise exception 'this hook fails'; end $$");
		this.engine.execute("create function pgque.hook_of_nothing() returns integer language sql as 'select 1'");
		this.engine.execute("create function pgque.hook_with_text(text) returns text language sql as 'select $1'");
		this.engine.execute("create procedure pgque.no_function(text) language sql as 'select 1'");
	}

	@AfterEach
	void forget() {
		hooks("{}");
		this.engine.update("delete from public.called");
	}

	@Test
	void hookIsCalledWithTheQueueAndItsResultCounts() {
		hooks("{pgque.hook}");
		assertThat(maint()).isEqualTo(7);
		assertThat(this.engine.values(String.class, "select queue from public.called")).containsExactly(this.queue);
	}

	@Test
	void namesMayLackTheSchemaAndBeQuoted() {
		hooks("{hook,public.\\\"Odd hook\\\"}");
		assertThat(maint()).isEqualTo(14);
		assertThat(this.engine.values(String.class, "select hook from public.called")).containsExactly("pgque.hook",
				"public.\"Odd hook\"");
	}

	@Test
	void eachQueueHasItsHooks() {
		hooks("{hook}");
		String other = this.engine.queue();
		this.engine.update("update pgque.queue set queue_extra_maint = '{hook}' where queue_name = ?", other);
		assertThat(maint()).isEqualTo(14);
		assertThat(this.engine.values(String.class, "select queue from public.called"))
			.containsExactlyInAnyOrder(this.queue, other);
		this.engine.value(Integer.class, "select pgque.drop_queue(?)", other);
	}

	@ParameterizedTest
	@ValueSource(strings = { "pgque.foreign_hook", "foreign_hook", "pgque.nothing", "hook_of_nothing", "hook_with_text",
			"no_function", "pg_catalog.length", "length", "pg_read_file", "hook(text); drop table public.called; --",
			"no.such.function", "" })
	void otherFunctionsAreSkippedWithAWarning(String hook) {
		this.engine.update("update pgque.queue set queue_extra_maint = array[?, 'hook'] where queue_name = ?", hook,
				this.queue);
		assertThat(this.engine.warnings("select pgque.maint()")).singleElement().asString().contains(hook);
		assertThat(this.engine.values(String.class, "select hook from public.called")).as("the next one")
			.containsExactly("pgque.hook");
		assertThat(maint()).isEqualTo(7);
	}

	@Test
	void whatAHookSetsEndsWithIt() {
		this.engine.execute("create function pgque.wandering_hook(text) returns integer language sql as"
				+ " $$ select length(set_config('search_path', 'public', true)) $$");
		this.engine.execute("create function pgque.looking_hook(i_queue text) returns integer language sql as"
				+ " $$ insert into public.called values (current_setting('search_path'), i_queue, '') returning 1 $$");
		hooks("{wandering_hook,looking_hook}");
		maint();
		assertThat(this.engine.values(String.class, "select hook from public.called"))
			.containsExactly("pg_catalog, pg_temp");
	}

	@Test
	void failingHookStopsNothingElse() {
		hooks("{failing_hook,hook}");
		this.engine.update("update pgque.queue set queue_switch_time = now() - interval '3 hours' where queue_name = ?",
				this.queue);
		assertThat(this.engine.warnings("select pgque.maint()")).singleElement()
			.asString()
			.contains("failing_hook", this.queue, "this hook fails");
		assertThat(this.engine.values(String.class, "select hook from public.called")).containsExactly("pgque.hook");
		assertThat(this.engine.value(Integer.class, "select queue_cur_table from pgque.queue where queue_name = ?",
				this.queue))
			.isEqualTo(1);
	}

	@Test
	void hooksCanBeRunApart() {
		hooks("{failing_hook,hook}");
		String other = this.engine.queue();
		this.engine.update("update pgque.queue set queue_switch_time = now() - interval '3 hours' where queue_name = ?",
				other);
		assertThat(this.engine.value(Integer.class, "select pgque.maint_engine()")).isZero();
		assertThat(this.engine.values(String.class, "select hook from public.called")).isEmpty();
		assertThat(
				this.engine.value(Integer.class, "select queue_cur_table from pgque.queue where queue_name = ?", other))
			.isEqualTo(1);
		assertThat(this.engine.values(String.class, "select hook from pgque.maint_hooks() where queue = ?", this.queue))
			.containsExactly("failing_hook", "hook");
		assertThat(this.engine.error("select pgque.maint_hook(?, 'failing_hook')", this.queue).message())
			.contains("this hook fails");
		assertThat(this.engine.value(Integer.class, "select pgque.maint_hook(?, 'hook')", this.queue)).isEqualTo(7);
		assertThat(this.engine.value(Integer.class, "select pgque.maint_hook(?, 'hook_with_text')", this.queue))
			.as("not one of the queue's")
			.isZero();
		assertThat(this.engine.values(String.class, "select hook from public.called")).containsExactly("pgque.hook");
	}

	@Test
	void catalogOfTheCallerFoolsNobody() {
		hooks("{pgque.foreign_hook}");
		this.engine.inTransaction(() -> {
			this.engine.execute("create temp table pg_proc on commit drop as select * from pg_catalog.pg_proc");
			this.engine.execute(
					"update pg_temp.pg_proc set proowner = (select oid from pg_roles where rolname = current_user)");
			assertThat(this.engine.warnings("select pgque.maint()")).hasSize(1);
			assertThat(this.engine.rows("select * from public.called")).isEmpty();
		});
	}

	private void hooks(String names) {
		this.engine.update("update pgque.queue set queue_extra_maint = ?::text[] where queue_name = ?", names,
				this.queue);
	}

	private int maint() {
		return this.engine.value(Integer.class, "select pgque.maint()");
	}

}
