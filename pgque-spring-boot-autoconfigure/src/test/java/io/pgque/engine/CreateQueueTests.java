package io.pgque.engine;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for creating and dropping queues, and for the functions that belong to it.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class CreateQueueTests {

	private static final String TABLES = """
			select c.relname::text from pg_catalog.pg_class c
			where c.relnamespace = 'pgque'::regnamespace and c.relname ~ ('^event_' || ? || '(_|$)')
			order by c.relname collate "C"
			""";

	private final TestDatabase database;

	private final Engine engine;

	private String created;

	CreateQueueTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@Test
	void createTellsNewFromExisting() {
		assertThat(create("orders")).isEqualTo(1);
		assertThat(create("orders")).isZero();
	}

	@Test
	void queueStartsWithDefaultsAndATick() {
		String queue = this.engine.queue();
		int id = this.engine.idOf(queue);
		assertThat(this.engine.row("""
				select queue_ntables, queue_cur_table, queue_rotation_period::text, queue_external_ticker,
				       queue_disable_insert, queue_ticker_paused, queue_ticker_max_count, queue_ticker_max_lag::text,
				       queue_ticker_idle_period::text, queue_data_pfx, queue_event_seq, queue_tick_seq,
				       queue_extra_maint, queue_max_retries, queue_switch_step1 = queue_switch_step2
				from pgque.queue where queue_name = ?
				""", queue))
			.isEqualTo(tuple(3, 0, "02:00:00", false, false, false, 500, "00:00:03", "00:01:00", "pgque.event_" + id,
					"pgque.event_" + id + "_id_seq", "pgque.event_" + id + "_tick_seq", null, null, true));
		assertThat(this.engine.values(Long.class, "select tick_id from pgque.tick where tick_queue = ?", id))
			.containsExactly(1L);
	}

	@Test
	void queueHasThreeTablesWithAnIndexAndTwoSequences() {
		int id = this.engine.idOf(this.engine.queue());
		assertThat(this.engine.values(String.class, TABLES, id)).containsExactly("event_" + id, "event_" + id + "_0",
				"event_" + id + "_0_txid_idx", "event_" + id + "_1", "event_" + id + "_1_txid_idx",
				"event_" + id + "_2", "event_" + id + "_2_txid_idx", "event_" + id + "_id_seq",
				"event_" + id + "_tick_seq");
		assertThat(this.engine.values(String.class,
				"select array_to_string(reloptions, ',') from pg_catalog.pg_class"
						+ " where relname ~ ('^event_' || ? || '_[0-2]$')",
				id))
			.hasSize(3)
			.allSatisfy((options) -> assertThat(options).contains("fillfactor=100", "autovacuum_enabled=false"));
	}

	@Test
	void eventsOfTheCreatingTransactionAreDelivered() {
		this.engine.inTransaction(() -> {
			this.engine.value(String.class, "select pg_current_xact_id()::text");
			// A transaction that began later and ended earlier makes ours look like one
			// of the past.
			this.database.execute("create table public.other ()");
			String queue = this.engine.queue("c");
			this.engine.send(queue, "x");
			this.created = queue;
		});
		this.engine.tick(this.created);
		assertThat(this.engine.receive(this.created, "c")).hasSize(1);
	}

	@Test
	void queueNeedsAName() {
		assertThat(this.engine.error("select pgque.create_queue(null)").state()).isEqualTo("P0001");
		assertThat(this.engine.error("select pgque.create_queue(null)").message()).contains("Invalid NULL value");
	}

	@Test
	void emptyNameIsAName() {
		assertThat(create("")).isEqualTo(1);
		assertThat(this.engine.send("", "x")).isEqualTo(1);
	}

	@Test
	void nameIsLimitedInBytes() {
		assertThat(create("x".repeat(57))).isEqualTo(1);
		assertThat(create("ü".repeat(28) + "x")).isEqualTo(1);
		assertThat(this.engine.error("select pgque.create_queue(?)", "x".repeat(58)))
			.satisfies((error) -> assertThat(error.message()).contains("queue name too long"))
			.satisfies((error) -> assertThat(error.state()).isEqualTo("P0001"));
		assertThat(this.engine.error("select pgque.create_queue(?)", "ü".repeat(29)).message())
			.contains("queue name too long");
		assertThat(this.engine.value(Boolean.class,
				"select exists (select from pgque.queue where queue_name in (?, ?))", "x".repeat(58), "ü".repeat(29)))
			.isFalse();
	}

	@Test
	void anyCharacterWillDo() {
		String name = "Bestellung \"ä\"'; drop table pgque.queue; --";
		assertThat(create(name)).isEqualTo(1);
		this.engine.subscribe(name, "c");
		this.engine.send(name, "x");
		this.engine.tick(name);
		assertThat(this.engine.receive(name, "c")).hasSize(1);
		assertThat(drop(name, true)).isEqualTo(1);
	}

	@Test
	void queueRolledBackLeavesNothing() {
		this.engine.rolledBack(() -> assertThat(create("undone")).isEqualTo(1));
		assertThat(this.engine.value(Integer.class, "select count(*) from pgque.queue where queue_name = 'undone'"))
			.isZero();
		assertThat(create("undone")).isEqualTo(1);
	}

	@Test
	void dropRemovesEverythingOfTheQueue() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.nack(batch, 1, "1 hour", null);
		this.engine.value(Object.class, "select pgque.settle(?, null, '{2}', '{0}', '{bad}', '{t}')", batch);
		this.engine.value(Integer.class, "select pgque.unsubscribe(?, 'c')", queue);
		assertThat(this.engine.value(Integer.class, "select pgque.drop_queue(?)", queue)).isEqualTo(1);
		assertThat(this.engine.values(String.class, TABLES, id)).isEmpty();
		assertThat(this.engine.value(Integer.class, """
				select (select count(*) from pgque.queue where queue_id = q.id)
				     + (select count(*) from pgque.tick where tick_queue = q.id)
				     + (select count(*) from pgque.subscription where sub_queue = q.id)
				     + (select count(*) from pgque.retry_queue where ev_queue = q.id)
				     + (select count(*) from pgque.dead_letter where dl_queue_id = q.id)
				from (select ? as id) q
				""", id)).isZero();
	}

	@Test
	void readersComeAndGoWithTheQueue() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		assertThat(readers(id)).isEqualTo(3);
		assertThat(this.engine.value(Integer.class, "select pgque.drop_queue(?, true)", queue)).isEqualTo(1);
		assertThat(readers(id)).isZero();
	}

	@Test
	void readersThatAreMissingAreMadeByTheTick() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		this.engine.value(Object.class, "select pgque_internal.drop_readers(?)", id);
		assertThat(readers(id)).isZero();
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		assertThat(this.engine.receive(queue, "c")).hasSize(1);
		assertThat(readers(id)).isEqualTo(3);
	}

	private int readers(int queueId) {
		return this.engine.value(Integer.class, "select count(*) from pg_catalog.pg_proc"
				+ " where pronamespace = 'pgque_internal'::regnamespace and proname like 'event\\_' || ? || '\\_%'",
				queueId);
	}

	@Test
	void dropRefusesWhileConsumersAreAttached() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.error("select pgque.drop_queue(?)", queue))
			.satisfies((error) -> assertThat(error.message()).contains("consumers still attached"))
			.satisfies((error) -> assertThat(error.state()).isEqualTo("P0001"));
		assertThat(this.engine.error("select pgque.drop_queue(?, false)", queue).message())
			.contains("consumers still attached");
		assertThat(this.engine.subscribe(queue, "c")).isZero();
	}

	@Test
	void dropByForceEndsSubscriptions() {
		String queue = this.engine.queue("c1", "c2");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		this.engine.nack(this.engine.nextBatch(queue, "c1"), 1, "1 hour", null);
		assertThat(drop(queue, true)).isEqualTo(1);
		assertThat(this.engine.rows("select * from pgque.get_consumer_info(?)", queue)).isEmpty();
	}

	@Test
	void queueOfTheSameNameStartsAnew() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 5);
		this.engine.tick(queue);
		drop(queue, true);
		assertThat(create(queue)).isEqualTo(1);
		assertThat(this.engine.subscribe(queue, "c")).isEqualTo(1);
		assertThat(this.engine.send(queue, "first")).isEqualTo(1);
		this.engine.tick(queue);
		assertThat(this.engine.receive(queue, "c")).singleElement()
			.satisfies((message) -> assertThat(message.payload()).isEqualTo("first"));
	}

	@Test
	void dropOfUnknownQueue() {
		assertThat(this.engine.error("select pgque.drop_queue('nowhere')"))
			.isEqualTo(SqlError.raised("No such event queue: nowhere"));
		assertThat(this.engine.error("select pgque.drop_queue('nowhere', true)"))
			.isEqualTo(SqlError.raised("No such event queue: nowhere"));
		assertThat(this.engine.value(Integer.class, "select pgque.drop_queue(null)")).isNull();
	}

	@Test
	void activeTableIsFoundByPrefixAndNumber() {
		String queue = this.engine.queue();
		String table = this.engine.value(String.class,
				"select pgque.quote_fqname(queue_data_pfx || '_' || queue_cur_table)"
						+ " from pgque.queue where queue_name = ?",
				queue);
		assertThat(table).isEqualTo("pgque.event_" + this.engine.idOf(queue) + "_0");
		this.engine.send(queue, "x");
		assertThat(this.engine.values(String.class, "select ev_data from " + table)).containsExactly("x");
	}

	@Test
	void fullNamesAreSplitAtTheFirstDot() {
		assertThat(quoteFqname("pgque.queue")).isEqualTo("pgque.queue");
		assertThat(quoteFqname("queue")).isEqualTo("public.queue");
		assertThat(quoteFqname("My.odd.name")).isEqualTo("\"My\".\"odd.name\"");
		assertThat(quoteFqname(null)).isNull();
	}

	@Test
	void grantPermsOfUnknownQueue() {
		assertThat(this.engine.value(Integer.class, "select pgque.grant_perms(?)", this.engine.queue())).isEqualTo(1);
		assertThat(this.engine.error("select pgque.grant_perms('nowhere')"))
			.isEqualTo(SqlError.raised("Queue not found: nowhere"));
	}

	@Test
	void tuneStorageTellsUnknownQueues() {
		assertThat(this.engine.value(Integer.class, "select pgque.tune_storage(?)", this.engine.queue())).isEqualTo(1);
		assertThat(this.engine.value(Integer.class, "select pgque.tune_storage('nowhere')")).isZero();
		assertThat(this.engine.value(Integer.class, "select pgque.tune_storage(null)")).isNull();
	}

	@Test
	void grantsAreCopied() {
		this.engine.execute("create table public.grants_from (id int); create table public.grants_to (id int);"
				+ "grant select, update on public.grants_from to pgque_reader");
		assertThat(this.engine.value(Integer.class,
				"select pgque._grant_perms_from('public', 'grants_from', 'public', 'grants_to')"))
			.isEqualTo(2);
		assertThat(this.engine.row("select has_table_privilege('pgque_reader', 'public.grants_to', 'select'),"
				+ " has_table_privilege('pgque_reader', 'public.grants_to', 'update'),"
				+ " has_table_privilege('pgque_reader', 'public.grants_to', 'delete')"))
			.isEqualTo(tuple(true, true, false));
	}

	@Test
	void sequencesOnlyMoveForward() {
		this.engine.execute("create sequence public.numbers");
		assertThat(sequence("select pgque.seq_getval('public.numbers')")).isEqualTo(1);
		assertThat(sequence("select pgque.seq_setval('numbers', 10)")).isEqualTo(10);
		assertThat(sequence("select pgque.seq_setval('public.numbers', 5)")).isEqualTo(10);
		assertThat(sequence("select pgque.seq_getval('numbers')")).isEqualTo(10);
		assertThat(sequence("select nextval('public.numbers')")).isEqualTo(11);
		assertThat(sequence("select pgque.seq_getval(null)")).isNull();
	}

	@Test
	void urlEncoding() {
		assertThat(this.engine.value(String.class, "select pgque._urlencode(?)", "a-Z_0.9 ü/%"))
			.isEqualTo("a-Z_0.9+%c3%bc%2f%25");
		assertThat(this.engine.value(String.class, "select pgque._urlencode('')")).isEmpty();
		assertThat(this.engine.value(String.class, "select pgque._urlencode(null)")).isNull();
	}

	@Test
	void upgradeSchemaHasNothingToDo() {
		assertThat(this.engine.value(Integer.class, "select pgque.upgrade_schema()")).isZero();
	}

	private int create(String queue) {
		return this.engine.value(Integer.class, "select pgque.create_queue(?)", queue);
	}

	private int drop(String queue, boolean force) {
		return this.engine.value(Integer.class, "select pgque.drop_queue(?, ?)", queue, force);
	}

	private String quoteFqname(String name) {
		return this.engine.value(String.class, "select pgque.quote_fqname(?)", name);
	}

	private Long sequence(String sql) {
		return this.engine.value(Long.class, sql);
	}

}
