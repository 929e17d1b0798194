package io.pgque.engine;

import java.util.List;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for {@code pgque.subscription}, which clients read and write like a table.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class SubscriptionViewTests {

	private final TestDatabase database;

	private final Engine engine;

	SubscriptionViewTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@Test
	void columnsHaveTheirTypesAndOrder() {
		assertThat(this.engine.value(String.class, """
				select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
				from pg_catalog.pg_attribute where attrelid = 'pgque.subscription'::regclass
				""")).isEqualTo("sub_id integer, sub_queue integer, sub_consumer integer, sub_last_tick bigint,"
				+ " sub_active timestamp with time zone, sub_batch bigint, sub_next_tick bigint, sub_role text");
	}

	@Test
	void rowTellsIdleAndOpen() {
		String queue = this.engine.queue("c");
		assertThat(row(queue, "c")).isEqualTo(tuple(1L, null, null, "normal"));
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(row(queue, "c")).isEqualTo(tuple(1L, batch, 2L, "normal"));
		this.engine.ack(batch);
		assertThat(row(queue, "c")).isEqualTo(tuple(2L, null, null, "normal"));
	}

	@Test
	void remainderOfAPrefixIsIdle() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		this.engine.row("select * from pgque.settle(?, 2, null, null, null, null)", this.engine.nextBatch(queue, "c"));
		assertThat(row(queue, "c")).isEqualTo(tuple(1L, null, null, "normal"));
	}

	@Test
	void insertIsASubscription() {
		String queue = this.engine.queue();
		int consumer = consumer("inserted");
		assertThat(this.engine.update(
				"insert into pgque.subscription (sub_queue, sub_consumer, sub_last_tick) values (?, ?, 1)",
				this.engine.idOf(queue), consumer))
			.isEqualTo(1);
		assertThat(row(queue, "inserted")).isEqualTo(tuple(1L, null, null, "normal"));
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "inserted")).hasSize(1);
		assertThat(this.engine.row("select sub_id is not null, sub_active > now() - interval '1 minute'"
				+ " from pgque.subscription where sub_queue = ?", this.engine.idOf(queue)))
			.isEqualTo(tuple(true, true));
	}

	@Test
	void insertReturnsAndTakesAllColumns() {
		String queue = this.engine.queue();
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		assertThat(this.engine.row(
				"insert into pgque.subscription values (4711, ?, ?, 1, '2001-02-03 04:05:06+00', 99999999,"
						+ " 2, 'coop_main') returning sub_id, sub_last_tick, sub_batch, sub_next_tick, sub_role",
				this.engine.idOf(queue), consumer("whole")))
			.isEqualTo(tuple(4711, 1L, 99999999L, 2L, "coop_main"));
		assertThat(row(queue, "whole")).isEqualTo(tuple(1L, 99999999L, 2L, "coop_main"));
		assertThat(this.engine.value(Boolean.class,
				"select sub_active = '2001-02-03 04:05:06+00' from pgque.subscription where sub_id = 4711"))
			.isTrue();
		// The main row of a group has no batch to finish.
		this.engine.update("update pgque.subscription set sub_role = 'normal' where sub_batch = 99999999");
		assertThat(this.engine.ack(99999999)).isEqualTo(1);
	}

	@Test
	void constraintsHold() {
		String queue = this.engine.queue("c");
		String insert = "insert into pgque.subscription (sub_queue, sub_consumer, sub_role) values (?, ?, ?) returning sub_id";
		assertThat(this.engine.error(insert, this.engine.idOf(queue), consumer("c"), "normal").state())
			.isEqualTo("23505");
		assertThat(this.engine.error(insert, this.engine.idOf(queue), consumer("d"), "king").state())
			.isEqualTo("23514");
		assertThat(this.engine.error(insert, 0, consumer("d"), "normal").state()).isEqualTo("23503");
		assertThat(this.engine.error(insert, this.engine.idOf(queue), null, "normal").state()).isEqualTo("23502");
	}

	@Test
	void updateMovesTheConsumer() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		this.engine.drain(queue, "c");
		assertThat(this.engine.update("update pgque.subscription set sub_last_tick = 1 where sub_queue = ?", id))
			.isEqualTo(1);
		assertThat(this.engine.receive(queue, "c")).hasSize(1);
		long batch = this.engine.openBatch(queue, "c");
		this.engine.update("update pgque.subscription set sub_batch = null, sub_next_tick = null where sub_queue = ?",
				id);
		assertThat(this.engine.ack(batch)).isZero();
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
	}

	@Test
	void updateOfOneColumnLeavesTheOthersAlone() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		this.engine.row("select * from pgque.settle(?, 1, null, null, null, null)", this.engine.nextBatch(queue, "c"));
		List<Message> rest = this.engine.receive(queue, "c");
		this.engine.update("update pgque.subscription set sub_role = 'coop_main' where sub_queue = ?", id);
		this.engine.update("update pgque.subscription set sub_role = 'normal' where sub_queue = ?", id);
		assertThat(this.engine.update(
				"update pgque.subscription set sub_active = now() - interval '1 hour'" + " where sub_queue = ?", id))
			.isEqualTo(1);
		assertThat(row(queue, "c")).isEqualTo(tuple(1L, rest.get(0).batch(), 2L, "normal"));
		assertThat(this.engine.value(Boolean.class,
				"select last_seen > interval '59 minutes' from pgque.get_consumer_info(?)", queue))
			.isTrue();
		assertThat(this.engine.receive(queue, "c")).as("the settled part stays so").isEqualTo(rest).hasSize(2);
	}

	@Test
	void updateOfNothingIsOne() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.update("update pgque.subscription set sub_last_tick = sub_last_tick where sub_queue = ?",
				this.engine.idOf(queue)))
			.isEqualTo(1);
		assertThat(row(queue, "c")).isEqualTo(tuple(1L, null, null, "normal"));
	}

	@Test
	void updateMayHandTheRowToAnotherConsumer() {
		String queue = this.engine.queue("c");
		int id = this.engine.idOf(queue);
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		this.engine.update("update pgque.subscription set sub_consumer = ? where sub_queue = ?", consumer("renamed"),
				id);
		assertThat(this.engine.rows("select * from pgque.get_consumer_info(?, 'c')", queue)).isEmpty();
		assertThat(this.engine.drain(queue, "renamed")).hasSize(1);
	}

	@Test
	void deleteEndsSubscriptionsAndTheQueueCanBeDropped() {
		String queue = this.engine.queue("c1", "c2");
		int id = this.engine.idOf(queue);
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		this.engine.nack(this.engine.nextBatch(queue, "c1"), 1, "1 hour", null);
		assertThat(this.engine.update("delete from pgque.subscription where sub_queue = ?", id)).isEqualTo(2);
		assertThat(this.engine.rows("select * from pgque.get_consumer_info(?)", queue)).isEmpty();
		assertThat(this.engine.error("select pgque.next_batch(?, 'c1')", queue).message()).contains("Not subscriber");
		assertThat(this.engine.value(Integer.class, "select pgque.drop_queue(?, true)", queue)).isEqualTo(1);
	}

	@Test
	void deleteReturns() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.row("delete from pgque.subscription where sub_queue = ? returning sub_last_tick",
				this.engine.idOf(queue)))
			.isEqualTo(tuple(1L));
	}

	@Test
	void rowCanBeLocked() throws Exception {
		String queue = this.engine.queue("c");
		String lock = "select sub_last_tick from pgque.subscription where sub_queue = ? for update";
		try (Session holder = Session.transactional(this.database)) {
			assertThat(holder.value(Long.class, lock, this.engine.idOf(queue))).isEqualTo(1);
			assertThat(this.engine.error(lock + " nowait", this.engine.idOf(queue)).state()).isEqualTo("55P03");
			assertThat(this.engine.rows(lock + " skip locked", this.engine.idOf(queue))).isEmpty();
			holder.connection().rollback();
		}
		assertThat(this.engine.rows(lock, this.engine.idOf(queue))).hasSize(1);
	}

	@Test
	void lockOfTheRowKeepsReceiversOut() throws Exception {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		try (Session holder = Session.transactional(this.database)) {
			holder.run("select from pgque.subscription where sub_queue = " + this.engine.idOf(queue) + " for update");
			this.engine.inTransaction(() -> {
				this.engine.execute("set local lock_timeout = '50ms'");
				assertThat(this.engine.error("select pgque.next_batch(?, 'c')", queue).state()).isEqualTo("55P03");
			});
			holder.connection().rollback();
		}
		assertThat(this.engine.nextBatch(queue, "c")).isNotNull();
	}

	@Test
	void existsAsClientsLookForIt() {
		assertThat(this.engine.values(String.class,
				"select table_name::text from information_schema.tables" + " where table_schema = 'pgque'"))
			.contains("queue", "tick", "subscription", "consumer", "config", "event_template", "retry_queue",
					"dead_letter");
	}

	private int consumer(String name) {
		return this.engine.value(Integer.class, "insert into pgque.consumer (co_name) values (?)"
				+ " on conflict (co_name) do update set co_name = excluded.co_name returning co_id", name);
	}

	private Tuple row(String queue, String consumer) {
		return this.engine.row(
				"select sub_last_tick, sub_batch, sub_next_tick, sub_role from pgque.subscription"
						+ " join pgque.consumer on co_id = sub_consumer where sub_queue = ? and co_name = ?",
				this.engine.idOf(queue), consumer);
	}

}
