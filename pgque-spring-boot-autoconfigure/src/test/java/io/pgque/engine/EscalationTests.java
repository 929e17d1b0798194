package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

import org.springframework.jdbc.BadSqlGrammarException;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests that an administrator of the engine, who may create functions in its schema,
 * can't make it run them with its owner's rights.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class EscalationTests {

	/**
	 * For every function that has an argument other than text: the statements that make
	 * overloads of it which win over a call that isn't exact about its types.
	 */
	private static final String OVERLOADS = """
			select format('create function pgque.%I(%s) returns integer language plpgsql as'
			              ' $body$ begin raise exception ''overload of %s called by %%'', current_user; end $body$',
			              p.proname, string_agg(case when v.name = 'text' then 'text'
			                                         when a.type = 'integer' then 'bigint'
			                                         when a.type = 'bigint' then 'integer'
			                                         when a.type = 'jsonb' then 'text'
			                                         when a.type = 'text' then 'varchar'
			                                         else a.type end, ', ' order by a.n), p.proname)
			from pg_catalog.pg_proc p
			cross join lateral (
			    select n, format_type(t, null) as type from unnest(p.proargtypes) with ordinality u (t, n)
			) a
			cross join (values ('text'), ('other')) v (name)
			where p.pronamespace = 'pgque'::regnamespace and p.prokind = 'f'
			group by p.oid, p.proname, v.name
			having bool_or(a.type <> 'text')
			""";

	private final Engine owner;

	private final Engine admin;

	private int uses;

	EscalationTests(TestDatabase database) {
		this.owner = new Engine(database);
		this.admin = new Engine(database.createLogin("pgque_admin").dataSource());
	}

	@Test
	void functionsOfTheServerAreNotShadowed() {
		for (String function : new String[] { "now() returns timestamptz", "clock_timestamp() returns timestamptz",
				"pg_notify(text, text) returns void", "nextval(regclass) returns bigint",
				"pg_current_snapshot() returns pg_snapshot", "pg_current_xact_id() returns xid8",
				"octet_length(text) returns integer", "pg_sequence_last_value(regclass) returns bigint",
				"set_config(text, text, boolean) returns text", "writable_queue(text) returns pgque.queue" }) {
			this.admin.execute("create or replace function pgque.%s language plpgsql as $$ begin raise exception"
				.formatted(function) + " 'shadow called by %', current_user; end $$");
		}
		useEverything();
	}

	@Test
	void overloadsDoNotWin() {
		List<String> overloads = this.owner.values(String.class, OVERLOADS);
		assertThat(overloads).hasSizeGreaterThan(50);
		assertThat(overloads.stream().filter(this::create).count()).isGreaterThan(40);
		useEverything();
	}

	@Test
	void temporaryObjectsAreNotTakenForTheEngines() {
		this.admin.inTransaction(() -> {
			for (String table : new String[] { "queue", "consumer", "tick", "subscription", "event", "retry_queue",
					"pg_proc", "pg_class", "pg_namespace", "pg_roles", "pg_inherits" }) {
				this.admin.execute("create temp table " + table + " (id int) on commit drop");
			}
			this.admin.execute("create function pg_temp.now() returns timestamptz language plpgsql as $$"
					+ " begin raise exception 'shadow'; end $$");
			String queue = this.admin.queue("c");
			this.admin.send(queue, 1);
			this.admin.value(Long.class, "select pgque.ticker()");
			assertThat(this.admin.nextBatch(queue, "c")).isNotNull();
			assertThat(this.admin.warnings("select pgque.maint()")).isEmpty();
			this.admin.value(Integer.class, "select pgque.drop_queue(?, true)", queue);
		});
	}

	@Test
	void hookOfAnAdministratorIsNotRun() {
		String queue = this.admin.queue();
		this.admin.execute("create function pgque.admin_hook(text) returns integer language plpgsql as"
				+ " $$ begin raise exception 'hook called by %', current_user; end $$");
		this.admin.update("update pgque.queue set queue_extra_maint = '{pgque.admin_hook}' where queue_name = ?",
				queue);
		for (Engine caller : List.of(this.admin, this.owner)) {
			assertThat(caller.warnings("select pgque.maint()")).singleElement()
				.asString()
				.contains("pgque.admin_hook", queue)
				.doesNotContain("hook called by");
		}
		this.admin.update("update pgque.queue set queue_extra_maint = null where queue_name = ?", queue);
	}

	@Test
	void functionsOfTheServerAreNoHooks() {
		String queue = "/etc/hostname";
		this.admin.value(Integer.class, "select pgque.create_queue(?)", queue);
		this.admin.update("update pgque.queue set queue_extra_maint = '{pg_read_file,pg_catalog.pg_read_file}'"
				+ " where queue_name = ?", queue);
		assertThat(this.admin.warnings("select pgque.maint()")).hasSize(2)
			.allSatisfy((warning) -> assertThat(warning).contains("is no function(text) returns integer"));
		this.admin.value(Integer.class, "select pgque.drop_queue(?)", queue);
	}

	@Test
	void operatorsOfTheCallersPathAreNotUsed() {
		this.owner
			.execute("create function public.foreign_operator(integer, numeric) returns numeric language plpgsql as"
					+ " $$ begin raise exception 'operator called by %', current_user; end $$");
		this.owner.execute("create operator public./ (leftarg = integer, rightarg = numeric,"
				+ " function = public.foreign_operator)");
		this.owner.value(Integer.class, "select pgque.set_tick_period_ms(1000)");
		this.owner.execute("call pgque.ticker_loop()");
	}

	@Test
	void functionsOfTheEngineCannotBeReplaced() {
		for (String statement : new String[] {
				"create or replace function pgque.version() returns text language sql as $$ select 'mine' $$",
				"alter function pgque.version() security invoker", "drop function pgque.maint()",
				"create function pgque_internal.mine() returns integer language sql as 'select 1'",
				"create trigger mine before insert on pgque.queue for each row execute function"
						+ " suppress_redundant_updates_trigger()",
				"alter table pgque.queue add column mine integer", "create view pgque_internal.mine as select 1" }) {
			assertThat(this.admin.error(statement).state()).as(statement).isEqualTo("42501");
		}
	}

	private boolean create(String overload) {
		try {
			this.admin.execute(overload);
			return true;
		}
		catch (BadSqlGrammarException ex) {
			assertThat(ex.getSQLException().getSQLState()).as("the engine has it itself").isEqualTo("42723");
			return false;
		}
	}

	/**
	 * Call what calls other functions, with arguments of exactly the types declared.
	 */
	private void useEverything() {
		Engine engine = this.admin;
		String queue = "exact " + (++this.uses);
		assertThat(engine.value(Integer.class, "select pgque.create_queue(?::text)", queue)).isEqualTo(1);
		assertThat(engine.value(Integer.class, "select pgque.subscribe(?::text, 'c'::text)", queue)).isEqualTo(1);
		assertThat(engine.value(Integer.class, "select pgque.register_consumer(?::text, 'd'::text)", queue))
			.isEqualTo(1);
		engine.value(Integer.class, "select pgque.set_queue_config(?::text, 'max_retries'::text, '1'::text)", queue);
		engine.value(Long.class, "select pgque.send(?::text, '{}'::jsonb)", queue);
		engine.value(Long.class, "select pgque.send(?::text, 't'::text, 'x'::text)", queue);
		engine.values(Long.class, "select unnest(pgque.send_batch(?::text, 't'::text, array['x', 'y']::text[]))",
				queue);
		engine.value(Long.class, "select pgque.insert_event(?::text, 't'::text, 'x'::text)", queue);
		engine.value(Long.class,
				"select pgque.insert_event_raw(?::text, null::bigint, now(), null::integer, null::integer,"
						+ " 't'::text, 'x'::text, null::text, null::text, null::text, null::text)",
				queue);
		engine.value(Long.class, "select pgque.force_tick(?::text)", queue);
		engine.value(Long.class, "select pgque.ticker(?::text)", queue);
		assertThat(engine.rows("select * from pgque.tick_now(array[?]::text[])", queue)).isEmpty();
		engine.rows("select * from pgque.tick_now()");
		engine.value(Long.class, "select pgque.ticker()");
		long batch = engine.value(Long.class, "select batch_id from pgque.next_batch_custom(?::text, 'c'::text,"
				+ " null::interval, 1::integer, '0'::interval)", queue);
		assertThat(engine.value(Long.class, "select pgque.next_batch(?::text, 'c'::text)", queue)).isEqualTo(batch);
		assertThat(engine.row("select batch_id from pgque.next_batch_info(?::text, 'c'::text)", queue))
			.isEqualTo(tuple(batch));
		List<Message> messages = engine.messages("select * from pgque.receive(?::text, 'c'::text, 10::integer)", queue);
		assertThat(messages).hasSize(6);
		assertThat(engine.rows("select * from pgque.get_batch_events(?::bigint)", batch)).hasSize(6);
		engine.inTransaction(() -> assertThat(
				engine.rows("select * from pgque.get_batch_cursor(?::bigint, 'cur'::text, 10::integer)", batch))
			.hasSize(6));
		engine.rows("select * from pgque.batch_event_tables(?::bigint)", batch);
		engine.rows("select * from pgque.get_batch_info(?::bigint)", batch);
		engine.value(Integer.class, "select pgque.event_retry(?::bigint, 1::bigint, 0::integer)", batch);
		engine.value(Integer.class,
				"select pgque.nack(?::bigint, row(2, null, null, null, null, null, null, null, null,"
						+ " null)::pgque.message, '0'::interval, null::text)",
				batch);
		engine.rows("select * from pgque.settle(?::bigint, 4::bigint, '{3,4}'::bigint[], '{0,0}'::interval[],"
				+ " '{x,y}'::text[], '{f,t}'::boolean[])", batch);
		List<Message> rest = engine
			.messages("select * from pgque.receive_batch(?::text, 'c'::text, 10::integer, 9::bigint)", queue);
		assertThat(rest).isNotEmpty();
		engine.rows("select * from pgque.receive_page(?::bigint, 0::bigint, 10::integer, 9::bigint)",
				rest.get(0).batch());
		assertThat(engine.value(Integer.class, "select pgque.batch_retry(?::bigint, 0::integer)", rest.get(0).batch()))
			.isEqualTo(2);
		assertThat(engine.value(Integer.class, "select pgque.ack(?::bigint)", rest.get(0).batch())).isEqualTo(1);
		assertThat(engine.value(Integer.class, "select pgque.maint_retry_events()")).isEqualTo(5);
		engine.value(Long.class, "select pgque.dlq_redeliver(dl_id) from pgque.dead_letters(?::text, 1::integer)",
				queue);
		engine.rows("select * from pgque.dlq_replay_all(?::text)", queue);
		engine.rows("select * from pgque.dlq_inspect(?::text, 1::integer)", queue);
		engine.value(Integer.class, "select pgque.dlq_purge(?::text, '0'::interval)", queue);
		assertThat(engine.messages("select * from pgque.receive(?::text, 'd'::text, 1::integer)", queue)).hasSize(1);
		engine.rows("select * from pgque.get_queue_info()");
		engine.rows("select * from pgque.get_consumer_info()");
		engine.rows("select * from pgque.get_consumer_info(?::text)", queue);
		engine.rows("select * from pgque.status()");
		this.owner.update("update pgque.queue set queue_switch_time = now() - interval '3 hours' where queue_name = ?",
				queue);
		assertThat(engine.warnings("select pgque.maint()")).isEmpty();
		engine.value(Integer.class, "select pgque.set_tick_period_ms(1000::integer)");
		engine.execute("call pgque.ticker_loop()");
		assertThat(engine.value(Integer.class, "select pgque.unsubscribe(?::text, 'c'::text)", queue)).isEqualTo(1);
		assertThat(engine.value(Integer.class, "select pgque.drop_queue(?::text, true)", queue)).isEqualTo(1);
	}

}
