package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.SqlCalls.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static io.pgque.engine.SqlCalls.SqlError.raised;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Queues that were restored, by a dump, into a cluster whose transaction ids are lower.
 */
@PgqueDatabase
class RepairTests {

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
	}

	@Test
	void aRestoredQueueRefusesToTickUntilItIsRepaired() {
		subscribe("c");
		this.calls.sendTicks(this.queue, "1");
		restoreElsewhere();
		this.calls.send(this.queue, "2");
		this.calls.id("select pgque.force_next_tick(?)", this.queue);
		assertThat(this.calls.error("select pgque.ticker(?)", this.queue)).satisfies(raised("Invalid PgQ state"));
		assertThat((String) this.calls.row("select detail from pgque.tick_now(array[?])", this.queue).toList().get(0))
			.startsWith("Invalid PgQ state");
		assertThat(repair()).isEqualTo(2);
		assertThat(repair()).as("again").isNull();
		this.calls.tick(this.queue);
		assertThat(drain("c")).containsExactly("1", "2");
		this.calls.sendTicks(this.queue, "3");
		assertThat(drain("c")).containsExactly("3");
	}

	@Test
	void eachConsumerGetsWhatItHadNotSettled() {
		subscribe("none");
		subscribe("part");
		subscribe("all");
		subscribe("behind");
		this.calls.sendTicks(this.queue, "1", "2", "3", "4");
		drain("all");
		List<Message> open = receive("part");
		assertThat(open).hasSize(4);
		this.calls.row("select * from pgque.settle(?, ?, '{}', '{}', '{}', '{}')", open.get(0).batch(),
				open.get(1).id());
		long lost = receive("part").get(0).batch();
		this.calls.integer("select pgque.ack(?)",
				this.calls.messages("select * from pgque.receive(?, 'behind')", this.queue).get(0).batch());
		this.calls.send(this.queue, "not ticked");
		restoreElsewhere();
		subscribe("late");
		assertThat(repair()).isEqualTo(5 + 3 + 1 + 4 + 1);
		assertThat(this.calls.integer("select pgque.ack(?)", lost)).isZero();
		this.calls.sendTicks(this.queue, "new");
		assertThat(drain("none")).containsExactly("1", "2", "3", "4", "not ticked", "new");
		assertThat(drain("part")).containsExactly("3", "4", "not ticked", "new");
		assertThat(drain("all")).containsExactly("not ticked", "new");
		assertThat(drain("behind")).containsExactly("2", "3", "4", "not ticked", "new");
		assertThat(drain("late")).as("from the newest tick on").containsExactly("not ticked", "new");
	}

	@Test
	void redeliveriesStayWithTheirConsumer() {
		subscribe("c");
		subscribe("other");
		this.calls.sendTicks(this.queue, "in the log", "waiting");
		List<Message> batch = receive("c");
		drain("other");
		batch.forEach((message) -> this.calls.nack(message.batch(), message.id()));
		this.calls.integer("select pgque.ack(?)", batch.get(0).batch());
		this.calls.update("update pgque.retry_queue set ev_retry_after = now() where ev_data = 'in the log'");
		this.calls.integer("select pgque.maint_retry_events()");
		restoreElsewhere();
		assertThat(repair()).isEqualTo(1);
		this.calls.tick(this.queue);
		assertThat(receive("c")).extracting(Message::id, Message::payload, Message::retryCount)
			.containsExactly(tuple(batch.get(0).id(), "in the log", 1));
		drain("c");
		this.calls.redeliver(this.queue);
		assertThat(drain("c")).containsExactly("waiting");
		assertThat(drain("other")).isEmpty();
	}

	@Test
	void whatIsAppendedBeforeTheRepairIsNotForgotten() {
		subscribe("c");
		subscribe("other");
		register("a");
		this.calls.sendTicks(this.queue, "waiting", "dead", "open");
		List<Message> batch = receive("c");
		this.calls.row("select * from pgque.settle(?, ?, array[?, ?]::bigint[], '{1 h, 1 h}', '{why, why}', '{f, t}')",
				batch.get(0).batch(), batch.get(1).id(), batch.get(0).id(), batch.get(1).id());
		drain("other");
		receiveCoop("a");
		restoreElsewhere();
		this.calls.send(this.queue, "sent");
		this.calls.update("update pgque.retry_queue set ev_retry_after = now()");
		assertThat(this.calls.integer("select pgque.maint_retry_events()")).isEqualTo(1);
		this.calls.id("select pgque.dlq_redeliver(dl_id) from pgque.dead_letters(?, 1)", this.queue);
		assertThat(repair()).isEqualTo((1 + 1 + 1 + 1) + 1 + (3 + 1));
		this.calls.tick(this.queue);
		assertThat(receive("c")).extracting(Message::payload, Message::retryCount)
			.containsExactly(tuple("waiting", 1), tuple("dead", null), tuple("open", null), tuple("sent", null));
		assertThat(drain("other")).containsExactly("sent");
		assertThat(Message.payloads(receiveCoop("a"))).containsExactly("waiting", "dead", "open", "sent");
	}

	@Test
	void aGroupGetsTheOpenBatchesOfItsMembersAgain() {
		register("a");
		register("b");
		register("c");
		this.calls.sendTicks(this.queue, "1", "2");
		this.calls.send(this.queue, "3");
		this.calls.sendTicks(this.queue, "4", "5");
		receiveCoop("a");
		this.calls.integer("select pgque.ack(?)", receiveCoop("b").get(0).batch());
		List<Message> part = receiveCoop("c");
		this.calls.row("select * from pgque.settle(?, ?, '{}', '{}', '{}', '{}')", part.get(0).batch(),
				part.get(0).id());
		restoreElsewhere();
		assertThat(repair()).isEqualTo(3);
		this.calls.tick(this.queue);
		this.calls.sendTicks(this.queue, "new");
		assertThat(Message.payloads(receiveCoop("b"))).containsExactly("1", "4", "5");
		assertThat(receiveCoop("a")).extracting(Message::payload).containsExactly("new");
		assertThat(this.calls.subscription(this.queue, "group.c")).isEqualTo(tuple("coop_member", null, null, null));
	}

	@Test
	void slotsGetTheirOwnKeys() {
		this.calls.integer("select pgque.subscribe_slots(?, 'p', 2)", this.queue);
		for (String key : new String[] { "tenant-a", "tenant-b", "tenant-a", "tenant-b" }) {
			this.calls.sendKeyed(this.queue, key, key + this.calls.newestTick(this.queue));
			this.calls.tick(this.queue);
		}
		receiveSlot(1);
		this.calls.integer("select pgque.ack_partitioned(?, 'p', 1, 2, 'w')", this.queue);
		assertThat(receiveSlot(1)).hasSize(1);
		this.calls.value(Boolean.class, "select pgque.change_partitions(?, 'p', 1)", this.queue);
		restoreElsewhere();
		assertThat(repair()).isEqualTo(3);
		this.calls.tick(this.queue);
		assertThat(this.calls.value(Boolean.class, "select pgque.change_partitions(?, 'p', 1)", this.queue))
			.as("goes on from the repaired position")
			.isTrue();
		this.calls.redeliver(this.queue);
		this.calls.id("select pgque.claim_slot(?, 'p', 0, 'w')", this.queue);
		assertThat(this.calls.messages("select * from pgque.receive_partitioned(?, 'p', 0, 1, 'w')", this.queue))
			.extracting(Message::payload)
			.containsExactly("tenant-a1", "tenant-a3", "tenant-b4");
	}

	@Test
	void eventsInEverySlotOfTheRingAreFound() {
		subscribe("c");
		this.calls.integer("select pgque.set_queue_config(?, 'rotation_period', '1 us')", this.queue);
		for (int i = 0; i < 3; i++) {
			this.calls.sendTicks(this.queue, "" + i);
			this.calls.integer("select pgque.maint_rotate_tables_step1(?)", this.queue);
			this.calls.integer("select pgque.maint_rotate_tables_step2()");
		}
		restoreElsewhere();
		assertThat(this.calls.error("select pgque.maint_rotate_tables_step1(?)", this.queue))
			.satisfies(raised("maint failure"));
		assertThat(repair()).isEqualTo(3);
		this.calls.tick(this.queue);
		assertThat(drain("c")).containsExactly("0", "1", "2");
		for (int i = 0; i < 3; i++) {
			this.calls.integer("select pgque.maint_rotate_tables_step1(?)", this.queue);
			this.calls.integer("select pgque.maint_rotate_tables_step2()");
			this.calls.sendTicks(this.queue, "" + i);
		}
		assertThat(drain("c")).containsExactly("0", "1", "2");
	}

	@Test
	void aQueueWhoseEventsAloneAreOfTheOtherClusterIsRepaired() {
		subscribe("c");
		this.calls.send(this.queue, "1");
		shiftEvents();
		this.calls.tick(this.queue);
		assertThat(drain("c")).as("not visible").isEmpty();
		assertThat(repair()).isEqualTo(1);
		this.calls.tick(this.queue);
		assertThat(drain("c")).containsExactly("1");
	}

	@Test
	void aQueueWhoseRotationAloneIsOfTheOtherClusterIsRepaired() {
		this.calls.update("update pgque.queue set queue_switch_step1 = queue_switch_step1 + 1000000000,"
				+ " queue_switch_step2 = queue_switch_step2 + 1000000000 where queue_name = ?", this.queue);
		assertThat(repair()).isZero();
		assertThat(repair()).isNull();
	}

	@Test
	void aHealthyQueueIsLeftAlone() {
		subscribe("c");
		this.calls.sendTicks(this.queue, "1", "2");
		List<Message> open = receive("c");
		this.calls.send(this.queue, "3");
		long tick = this.calls.newestTick(this.queue);
		assertThat(repair()).isNull();
		assertThat(this.calls.newestTick(this.queue)).isEqualTo(tick);
		assertThat(receive("c")).isEqualTo(open);
	}

	@Test
	void otherQueuesKeepTheirPlace() {
		String other = this.calls.queue();
		this.calls.integer("select pgque.subscribe(?, 'c')", other);
		subscribe("c");
		this.calls.sendTicks(other, "1");
		List<Message> open = this.calls.messages("select * from pgque.receive(?, 'c')", other);
		restoreElsewhere();
		repair();
		assertThat(this.calls.messages("select * from pgque.receive(?, 'c')", other)).isEqualTo(open);
	}

	@Test
	void repairIsForAdministratorsAndNeedsAQueue() throws Exception {
		SqlCalls reader = new SqlCalls(this.database.createLogin("pgque_reader", "pgque_writer").dataSource());
		assertThat(reader.error("select pgque.repair_queue(?)", this.queue).state()).isEqualTo("42501");
		SqlCalls admin = new SqlCalls(this.database.createLogin("pgque_admin").dataSource());
		subscribe("c");
		this.calls.sendTicks(this.queue, "1");
		restoreElsewhere();
		assertThat(admin.value(Long.class, "select pgque.repair_queue(?)", this.queue)).isEqualTo(1);
		assertThat(admin.error("select pgque.repair_queue('nowhere')")).satisfies(raised("queue not found: nowhere"));
		try (Session session = Session.repeatableRead(this.database)) {
			org.assertj.core.api.Assertions.assertThatExceptionOfType(java.sql.SQLException.class)
				.isThrownBy(() -> session.value(Long.class, "select pgque.repair_queue(?)", this.queue))
				.satisfies((ex) -> assertThat(ex.getSQLState()).isEqualTo("25000"));
		}
	}

	private @Nullable Long repair() {
		return this.calls.value(Long.class, "select pgque.repair_queue(?)", this.queue);
	}

	/**
	 * Let the queue bear transaction ids that are far above those of this cluster.
	 */
	private void restoreElsewhere() {
		shiftEvents();
		this.calls.update("""
				update pgque.tick
				set tick_xid = (tick_xid::text::bigint + 1000000000)::text::xid8,
				    tick_snapshot = (select string_agg(case when part ~ '^\\d+$' then (part::bigint + 1000000000)::text
				                                            else part end, '' order by n)
				                     from regexp_split_to_table(tick_snapshot::text, '(?<=[:,])|(?=[:,])')
				                         with ordinality s (part, n))::pg_snapshot
				where tick_queue = (select queue_id from pgque.queue where queue_name = ?)""", this.queue);
		this.calls.update("update pgque.queue set queue_switch_step1 = queue_switch_step1 + 1000000000,"
				+ " queue_switch_step2 = queue_switch_step2 + 1000000000 where queue_name = ?", this.queue);
	}

	private void shiftEvents() {
		String table = this.calls.value(String.class, "select queue_data_pfx from pgque.queue where queue_name = ?",
				this.queue);
		this.calls.update("update " + table + " set ev_txid = (ev_txid::text::bigint + 1000000000)::text::xid8");
	}

	private void subscribe(String consumer) {
		this.calls.integer("select pgque.subscribe(?, ?)", this.queue, consumer);
	}

	private List<Message> receive(String consumer) {
		return this.calls.messages("select * from pgque.receive_batch(?, ?, 1000, 1000000)", this.queue, consumer);
	}

	private List<@Nullable String> drain(String consumer) {
		List<@Nullable String> all = new ArrayList<>();
		List<Message> batch = receive(consumer);
		while (!batch.isEmpty()) {
			all.addAll(Message.payloads(batch));
			assertThat(this.calls.settle(batch.get(0).batch())).isTrue();
			batch = receive(consumer);
		}
		return all;
	}

	private void register(String member) {
		this.calls.integer("select pgque.register_subconsumer(?, 'group', ?)", this.queue, member);
	}

	private List<Message> receiveCoop(String member) {
		return this.calls.messages("select * from pgque.receive_coop(?, 'group', ?)", this.queue, member);
	}

	private List<Message> receiveSlot(int slot) {
		this.calls.id("select pgque.claim_slot(?, 'p', ?, 'w')", this.queue, slot);
		return this.calls.messages("select * from pgque.receive_partitioned(?, 'p', ?, 2, 'w')", this.queue, slot);
	}

}
