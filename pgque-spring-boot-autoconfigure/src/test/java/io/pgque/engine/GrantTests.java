package io.pgque.engine;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for who may do what.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class GrantTests {

	private static final String DENIED = "42501";

	private final Engine owner;

	private final Engine reader;

	private final Engine writer;

	private final Engine admin;

	private final Engine nobody;

	private String queue;

	GrantTests(TestDatabase database) {
		this.owner = new Engine(database);
		this.reader = new Engine(database.createLogin("pgque_reader").dataSource());
		this.writer = new Engine(database.createLogin("pgque_writer").dataSource());
		this.admin = new Engine(database.createLogin("pgque_admin").dataSource());
		this.nobody = new Engine(database.createLogin().dataSource());
	}

	@BeforeAll
	void createQueue() {
		this.queue = this.admin.queue("c");
	}

	@Test
	void rolesCannotLogInAndAdministratorsAreReadersAndWriters() {
		assertThat(this.owner.rows("select rolname::text, rolcanlogin, rolsuper from pg_catalog.pg_roles"
				+ " where rolname in ('pgque_admin', 'pgque_reader', 'pgque_writer') order by 1"))
			.containsExactly(tuple("pgque_admin", false, false), tuple("pgque_reader", false, false),
					tuple("pgque_writer", false, false));
		assertThat(this.owner.row("select pg_has_role('pgque_admin', 'pgque_reader', 'member'),"
				+ " pg_has_role('pgque_admin', 'pgque_writer', 'member'), pg_has_role('pgque_writer', 'pgque_reader', 'member'),"
				+ " pg_has_role('pgque_reader', 'pgque_writer', 'member')"))
			.isEqualTo(tuple(true, true, false, false));
	}

	@Test
	void functionsAreGrantedToTheirRoles() {
		Map<String, String> expected = new TreeMap<>();
		"""
				R  subscribe unsubscribe register_consumer register_consumer_at unregister_consumer receive receive_batch
				R  receive_page batch_pages receive_mapped_page ack nack settle next_batch next_batch_info next_batch_custom get_batch_events finish_batch
				R  receive_leased instance_beat lease_acquire lease_left lease_release leases tick_before seek slot_of
				R  register_subconsumer subscribe_subconsumer unregister_subconsumer unsubscribe_subconsumer touch_subconsumer
				R  receive_coop receive_coop_batch subscribe_slot subscribe_slots unsubscribe_slot change_partitions claim_slot
				R  subscribe_from join_group leave_group dissolve_group claim_slots leave_slots consumer_mode
				R  release_slot receive_partitioned ack_partitioned nack_partitioned
				R  event_retry get_queue_info get_consumer_info get_batch_info dlq_inspect dead_letters version
				R  queue_stats consumer_stats consumer_backlog queue_health otel_metrics stuck_consumers in_flight throughput
				R  error_rate inbox_add key_places settle_holding held_keys settle_and_receive_leased
				W  send send_batch insert_event event_place dlq_replay dlq_redeliver dlq_replay_all dlq_redeliver_all
				RW distribution release
				A  insert_event_raw current_event_table get_batch_cursor batch_retry event_retry_raw batch_event_sql
				A  batch_event_tables find_tick_helper create_queue drop_queue set_queue_config set_inbox_retention grant_perms _grant_perms_from
				W  _urlencode send_idem send_idem_checked send_once send_events send_at send_after cancel_delayed
				A  maint_engine maint_hooks maint_hook maint_idem maint_deliver_delayed pause_queue resume_queue
				A  tune_storage quote_fqname seq_getval seq_setval upgrade_schema ticker tick_now force_tick
				A  tick_and_receive_leased
				A  force_next_tick ticker_loop set_tick_period_ms maint maint_retry_events maint_rotate_tables_step1
				A  maint_rotate_tables_step2 maint_operations maint_tables_to_vacuum status event_dead dlq_purge
				A  repair_queue start stop start_timetable stop_timetable jsontriga logutriga sqltriga
				O  insert_event_bulk uninstall
				"""
			.lines()
			.forEach((line) -> {
				String[] words = line.split(" +");
				for (int i = 1; i < words.length; i++) {
					expected.put(words[i], switch (words[0]) {
						case "R" -> "reader, admin";
						case "W" -> "writer, admin";
						case "RW" -> "reader, writer, admin";
						case "A" -> "admin";
						default -> "";
					});
				}
			});
		Map<String, String> actual = new TreeMap<>();
		this.owner
			.rows("""
					select distinct p.proname::text,
					       concat_ws(', ', case when has_function_privilege('pgque_reader', p.oid, 'execute') then 'reader' end,
					                 case when has_function_privilege('pgque_writer', p.oid, 'execute') then 'writer' end,
					                 case when has_function_privilege('pgque_admin', p.oid, 'execute') then 'admin' end)
					from pg_catalog.pg_proc p where p.pronamespace = 'pgque'::regnamespace
					""")
			.forEach((row) -> actual.merge((String) row.toList().get(0), (String) row.toList().get(1),
					(a, b) -> a + " and " + b));
		assertThat(actual).isEqualTo(expected);
	}

	@Test
	void helpersAreForTheOwnerAlone() {
		assertThat(this.owner.values(String.class, """
				select p.oid::regprocedure::text || ' ' || r from pg_catalog.pg_proc p
				cross join unnest('{pgque_reader,pgque_writer,pgque_admin}'::text[]) r
				where p.pronamespace = 'pgque_internal'::regnamespace and has_function_privilege(r, p.oid, 'execute')
				  and not (p.proname like 'capture%' and not p.prosecdef)
				""")).as("but for what capture triggers run with the rights of whoever writes to the table").isEmpty();
		assertThat(this.admin.error("select pgque_internal.ring_slot('tick')").state()).isEqualTo(DENIED);
		assertThat(this.admin.error("select * from pgque_internal.ring").state()).isEqualTo(DENIED);
	}

	@Test
	void schemas() {
		assertThat(this.owner
			.rows("""
					select r, has_schema_privilege(r, 'pgque', 'usage'), has_schema_privilege(r, 'pgque', 'create'),
					       has_schema_privilege(r, 'pgque_internal', 'usage'), has_schema_privilege(r, 'pgque_internal', 'create')
					from unnest('{pgque_reader,pgque_writer,pgque_admin}'::text[]) r
					"""))
			.containsExactly(tuple("pgque_reader", true, false, false, false),
					tuple("pgque_writer", true, false, true, false), tuple("pgque_admin", true, true, true, false));
	}

	@Test
	void internalTypesAreForTheOwnerAlone() {
		assertThat(this.owner.values(String.class, """
				select t.oid::regtype::text from pg_catalog.pg_type t
				where t.typnamespace = 'pgque_internal'::regnamespace
				  and has_type_privilege('pgque_admin', t.oid, 'usage')
				""")).isEmpty();
	}

	@Test
	void publicHoldsNothing() {
		assertThat(this.owner.values(String.class, """
				select p.oid::regprocedure::text
				from pg_catalog.pg_proc p
				cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
				where p.pronamespace::regnamespace::text like 'pgque%' and a.grantee = 0
				union all
				select c.oid::regclass::text
				from pg_catalog.pg_class c
				cross join lateral aclexplode(c.relacl) a
				where c.relnamespace::regnamespace::text like 'pgque%' and a.grantee = 0
				union all
				select c.attrelid::regclass || '.' || c.attname
				from pg_catalog.pg_attribute c
				join pg_catalog.pg_class t on t.oid = c.attrelid
				cross join lateral aclexplode(c.attacl) a
				where t.relnamespace::regnamespace::text like 'pgque%' and a.grantee = 0
				union all
				select n.nspname
				from pg_catalog.pg_namespace n
				cross join lateral aclexplode(n.nspacl) a
				where n.nspname like 'pgque%' and a.grantee = 0
				""")).isEmpty();
		assertThat(this.nobody.error("select pgque.version()").state()).isEqualTo(DENIED);
		assertThat(this.nobody.error("select * from pgque.queue").state()).isEqualTo(DENIED);
	}

	@Test
	void definersHaveASafeSearchPath() {
		assertThat(this.owner.values(String.class, """
				select p.oid::regprocedure::text from pg_catalog.pg_proc p
				where p.pronamespace::regnamespace::text like 'pgque%' and p.prosecdef
				  and 'search_path=pg_catalog, pg_temp' <> all (coalesce(p.proconfig, '{}'))
				""")).isEmpty();
		assertThat(this.owner.value(Integer.class, "select count(*) from pg_catalog.pg_proc p"
				+ " where p.pronamespace = 'pgque'::regnamespace and p.prosecdef"))
			.isGreaterThan(50);
	}

	@Test
	void nothingRunsUnderTheSearchPathOfASession() {
		// Both qualify all they call: one is to be inlined, the other commits.
		assertThat(this.owner.values(String.class, """
				select p.oid::regprocedure::text from pg_catalog.pg_proc p
				where (p.pronamespace = 'pgque'::regnamespace or p.prorettype = 'trigger'::regtype)
				  and p.pronamespace::regnamespace::text like 'pgque%'
				  and 'search_path=pg_catalog, pg_temp' <> all (coalesce(p.proconfig, '{}'))
				""")).containsExactlyInAnyOrder("pgque.slot_of(text,integer)", "pgque.ticker_loop()");
		assertThat(this.owner.values(String.class,
				"""
						select p.proname from pg_catalog.pg_proc p, unnest(array['public', 'pgque_reader', 'pgque_writer', 'pgque_admin']) r
						where p.pronamespace = 'pgque_internal'::regnamespace
						  and has_function_privilege(r, p.oid, 'execute')
						  and 'search_path=pg_catalog, pg_temp' <> all (coalesce(p.proconfig, '{}'))
						"""))
			.isEmpty();
	}

	@Test
	void writersSendAndReadersConsume() {
		String own = this.admin.queue();
		assertThat(this.reader.subscribe(own, "c")).isEqualTo(1);
		this.writer.send(own, "text");
		this.writer.value(Long.class, "select pgque.send(?, '{}'::jsonb)", own);
		this.writer.send(own, 2);
		this.writer.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", own);
		assertThat(this.admin.tick(own)).isEqualTo(2);
		List<Message> messages = this.reader.receive(own, "c");
		assertThat(messages).hasSize(5);
		long batch = messages.get(0).batch();
		assertThat(this.reader.rows("select * from pgque.get_batch_events(?)", batch)).hasSize(5);
		assertThat(this.reader.receiveBatch(own, "c", 10)).hasSize(5);
		assertThat(this.reader.messages("select * from pgque.receive_page(?, 2, 10, 1000)", batch)).hasSize(3);
		this.reader.nack(batch, 1, "0", null);
		this.reader.value(Integer.class, "select pgque.event_retry(?, 2, 0)", batch);
		assertThat(this.reader.row("select settled, retried, dead_ids::text from"
				+ " pgque.settle(?, 4, '{3,4}', '{0,0}', '{x,y}', '{f,t}')", batch))
			.isEqualTo(tuple(true, 1, "{4}"));
		assertThat(this.reader.ack(this.reader.nextBatch(own, "c"))).isEqualTo(1);
		assertThat(this.admin.moveRetries()).isEqualTo(3);
		this.admin.tick(own);
		assertThat(this.reader.drain(own, "c")).hasSize(3);
		assertThat(this.reader.rows("select * from pgque.dlq_inspect(?)", own)).hasSize(1);
		long letter = this.reader.value(Long.class, "select dl_id from pgque.dead_letters(?, 1)", own);
		assertThat(this.writer.value(Long.class, "select pgque.dlq_redeliver(?)", letter)).isEqualTo(4);
		assertThat(this.writer.row("select * from pgque.dlq_replay_all(?)", own)).isEqualTo(tuple(0L, 0L, null));
		assertThat(this.reader.rows("select * from pgque.get_queue_info()")).isNotEmpty();
		assertThat(this.reader.rows("select * from pgque.get_consumer_info(?)", own)).hasSize(1);
		assertThat(this.reader.value(String.class, "select pgque.version()")).isNotEmpty();
		assertThat(this.reader.value(Integer.class, "select pgque.unsubscribe(?, 'c')", own)).isEqualTo(1);
	}

	@Test
	void administratorsRunTheEngine() {
		String own = this.admin.queue("c");
		this.admin.configure(own, "max_retries", "2");
		this.admin.update("update pgque.queue set queue_max_retries = 1, queue_extra_maint = null where queue_name = ?",
				own);
		this.admin.send(own, 3);
		this.admin.value(Long.class,
				"select pgque.insert_event_raw(?, null, now(), null, null, 't', 'x', 'a', 'b', 'c', 'd')", own);
		assertThat(this.admin.value(Long.class, "select pgque.force_tick(?)", own)).isEqualTo(1);
		assertThat(this.admin.value(Long.class, "select pgque.ticker(?)", own)).isEqualTo(2);
		long batch = this.admin.nextBatch(own, "c");
		this.admin.inTransaction(() -> assertThat(
				this.admin.rows("select ev_id from pgque.get_batch_cursor(?, 'cur', 3, 'ev_id > 1')", batch))
			.hasSize(3));
		assertThat(this.admin.rows(this.admin.value(String.class, "select pgque.batch_event_sql(?)", batch)))
			.hasSize(4);
		assertThat(this.admin.value(Integer.class, "select pgque.batch_retry(?, 0)", batch)).isEqualTo(4);
		this.admin.ack(batch);
		assertThat(this.admin.moveRetries()).isEqualTo(4);
		assertThat(this.admin.value(Long.class, "select pgque.ticker()")).isNotNull();
		assertThat(this.admin.rows("select * from pgque.tick_now()")).isNotNull();
		assertThat(this.admin.value(Integer.class, "select pgque.maint()")).isZero();
		assertThat(this.admin.value(Integer.class, "select pgque.maint_rotate_tables_step1(?)", own)).isZero();
		assertThat(this.admin.value(Integer.class, "select pgque.maint_rotate_tables_step2()")).isZero();
		assertThat(this.admin.rows("select * from pgque.maint_operations()")).isEmpty();
		assertThat(this.admin.rows("select * from pgque.status()")).isNotEmpty();
		assertThat(this.admin.value(Integer.class, "select pgque.dlq_purge(?)", own)).isZero();
		assertThat(this.admin.value(Integer.class, "select pgque.set_tick_period_ms(1000)")).isEqualTo(1000);
		this.admin.execute("call pgque.ticker_loop()");
		assertThat(this.admin.value(String.class, "select pgque.current_event_table(?)", own)).isNotNull();
		assertThat(this.admin.value(Integer.class, "select pgque.drop_queue(?, true)", own)).isEqualTo(1);
	}

	@ParameterizedTest
	@ValueSource(strings = { "pgque.receive('q', 'c')", "pgque.receive_batch('q', 'c', 1, 1)",
			"pgque.receive_page(1, 1, 1, 1)", "pgque.ack(1)", "pgque.nack(1, null)", "pgque.finish_batch(1)",
			"pgque.settle(1, null, null, null, null, null)", "pgque.subscribe('q', 'c')", "pgque.unsubscribe('q', 'c')",
			"pgque.next_batch('q', 'c')", "pgque.next_batch_custom('q', 'c', null, null, null)",
			"pgque.register_consumer_at('q', 'c', 1)", "pgque.get_batch_events(1)", "pgque.event_retry(1, 1, 1)",
			"pgque.get_batch_cursor(1, 'c', 1)", "pgque.get_queue_info()", "pgque.version()", "pgque.dlq_inspect('q')",
			"pgque.create_queue('q')", "pgque.ticker()", "pgque.tick_now()", "pgque.maint()",
			"pgque.insert_event_bulk('q', 't', null)" })
	void writersMayNotConsumeOrAdminister(String call) {
		assertThat(this.writer.error("select * from " + call).state()).isEqualTo(DENIED);
	}

	@ParameterizedTest
	@ValueSource(strings = { "pgque.send('q', 'x')", "pgque.send('q', 't', '1'::jsonb)",
			"pgque.send_batch('q', '{}'::text[])", "pgque.send_batch('q', 't', '{}'::text[])",
			"pgque.insert_event('q', 't', 'x')", "pgque.dlq_replay(1)", "pgque.dlq_redeliver(1)",
			"pgque.dlq_replay_all('q')", "pgque.get_batch_cursor(1, 'c', 1)", "pgque.get_batch_cursor(1, 'c', 1, null)",
			"pgque.batch_retry(1, 1)", "pgque.create_queue('q')", "pgque.drop_queue('q')",
			"pgque.set_queue_config('q', 'ticker_paused', '1')", "pgque.ticker('q')", "pgque.tick_now('{q}')",
			"pgque.force_next_tick('q')", "pgque.maint()", "pgque.maint_retry_events()",
			"pgque.event_dead(1, 1, null, null, null, null, null, null)", "pgque.dlq_purge('q')", "pgque.status()" })
	void readersMayNotSendOrAdminister(String call) {
		assertThat(this.reader.error("select * from " + call).state()).isEqualTo(DENIED);
	}

	@Test
	void ownerOnlyMeansNotTheAdministrator() {
		assertThat(this.admin.error("select pgque.insert_event_bulk(?, 't', '{x}')", this.queue).state())
			.isEqualTo(DENIED);
	}

	@Test
	void payloadsAreForReaders() {
		String events = "pgque.event_" + this.owner.idOf(this.queue);
		for (String table : new String[] { events + "_0", "pgque.retry_queue", "pgque.dead_letter" }) {
			assertThat(this.reader.rows("select * from " + table)).isNotNull();
			assertThat(this.writer.error("select * from " + table).state()).isEqualTo(DENIED);
			assertThat(this.nobody.error("select * from " + table).state()).isEqualTo(DENIED);
		}
		for (String table : new String[] { "pgque.event", events }) {
			assertThat(this.writer.error("select * from " + table).state()).isEqualTo(DENIED);
			assertThat(this.nobody.error("select * from " + table).state()).isEqualTo(DENIED);
		}
	}

	@Test
	void writersAppendToEventTablesAndForgeNothing() {
		String own = this.admin.queue("c");
		String table = "pgque.event_" + this.owner.idOf(own) + "_0";
		assertThat(this.writer.row("select queue_id, slot from pgque.event_place(?)", own))
			.isEqualTo(tuple(this.owner.idOf(own), 0));
		assertThat(this.writer.value(Long.class,
				"insert into " + table + " (ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4)"
						+ " values ('t', 'x', 'a', 'b', 'c', 'd') returning ev_id"))
			.isEqualTo(1);
		for (String column : new String[] { "ev_id", "ev_time", "ev_txid", "ev_owner", "ev_retry", "ev_queue",
				"ev_slot" }) {
			assertThat(
					this.writer.error("insert into " + table + " (ev_type, " + column + ") values ('t', null)").state())
				.as(column)
				.isEqualTo(DENIED);
		}
		for (String statement : new String[] { "select ev_data from " + table, "select ev_extra1 from " + table,
				"insert into " + table + " (ev_data) values ('x') returning ev_data",
				"update " + table + " set ev_data = 'y'", "delete from " + table, "truncate " + table,
				"do 'begin lock table " + table + " in row exclusive mode; end'",
				"insert into pgque.event_" + this.owner.idOf(own) + " (ev_data) values ('x')",
				"insert into pgque.event (ev_data) values ('x')",
				"select setval('pgque.event_" + this.owner.idOf(own) + "_id_seq', 1000)",
				"select queue_data_pfx from pgque.queue" }) {
			assertThat(this.writer.error(statement).state()).as(statement).isEqualTo(DENIED);
		}
		for (Engine other : new Engine[] { this.reader, this.nobody }) {
			assertThat(other.error("insert into " + table + " (ev_type, ev_data) values ('t', 'x')").state())
				.isEqualTo(DENIED);
			assertThat(other.error("select pgque.event_place('q')").state()).isEqualTo(DENIED);
		}
		this.admin.tick(own);
		assertThat(this.reader.drain(own, "c")).extracting(Message::id, Message::payload, Message::extra4)
			.containsExactly(tuple(1L, "x", "d"));
	}

	@Test
	void placeIsToldToWhoeverMayUseIt() {
		String own = this.admin.queue("c");
		assertThat(this.writer.row("select * from pgque.event_place('nowhere')")).isEqualTo(tuple(null, null));
		assertThat(this.writer.row("select * from pgque.event_place(null)")).isEqualTo(tuple(null, null));
		assertThat(this.admin.row("select slot from pgque.event_place(?)", own)).isEqualTo(tuple(0));
		this.owner.update("update pgque.queue set queue_disable_insert = true where queue_name = ?", own);
		assertThat(this.writer.row("select * from pgque.event_place(?)", own)).isEqualTo(tuple(null, null));
		String table = "pgque.event_" + this.owner.idOf(own);
		this.owner.update("update pgque.queue set queue_disable_insert = false where queue_name = ?", own);
		for (String privilege : new String[] { "insert (ev_extra3) on " + table + "_0",
				"select (ev_id) on " + table + "_0", "usage on sequence " + table + "_id_seq" }) {
			this.owner.execute("revoke " + privilege + " from pgque_writer");
			assertThat(this.writer.row("select * from pgque.event_place(?)", own)).as(privilege)
				.isEqualTo(tuple(null, null));
			this.owner.execute("grant " + privilege + " to pgque_writer");
			assertThat(this.writer.row("select slot from pgque.event_place(?)", own)).isEqualTo(tuple(0));
		}
	}

	@Test
	void tablesAreReadByReadersAndWrittenByNobody() {
		for (String table : new String[] { "queue", "consumer", "tick", "subscription", "event_template", "retry_queue",
				"dead_letter", "config" }) {
			assertThat(this.reader.rows("select * from pgque." + table)).isNotNull();
			assertThat(this.owner
				.row("select bool_or(has_table_privilege(r, ?, 'insert')), bool_or(has_table_privilege(r, ?,"
						+ " 'update')), bool_or(has_table_privilege(r, ?, 'delete')), bool_or(has_table_privilege(r, ?, 'truncate'))"
						+ " from unnest('{pgque_reader,pgque_writer,pgque_admin}'::text[]) r", "pgque." + table,
						"pgque." + table, "pgque." + table, "pgque." + table))
				.isEqualTo(tuple(false, false, false, false));
		}
		assertThat(this.writer.error("select * from pgque.queue").state()).isEqualTo(DENIED);
		assertThat(this.admin.error("update pgque.queue set queue_data_pfx = 'x' returning 1").state())
			.isEqualTo(DENIED);
		assertThat(this.reader.error("update pgque.queue set queue_max_retries = 1 returning 1").state())
			.isEqualTo(DENIED);
	}

}
