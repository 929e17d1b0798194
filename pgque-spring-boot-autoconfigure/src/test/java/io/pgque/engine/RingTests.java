package io.pgque.engine;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.LongStream;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for the rings of tables in which ticks and positions of consumers stand; here
 * they turn whenever they may.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class RingTests {

	private static final int ROUNDS = 60;

	private final TestDatabase database;

	private final Engine engine;

	RingTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@BeforeEach
	void turnAlways() {
		this.engine.update("update pgque_internal.ring set ring_min_bytes = 0, ring_min_age = '0'");
	}

	/**
	 * Ticks are kept as long as the events behind them.
	 */
	private void rotateAlways(String queue) {
		this.engine.configure(queue, "rotation_period", "1 microsecond");
	}

	@AfterEach
	void dropQueues() {
		this.engine.values(Integer.class, "select pgque.drop_queue(queue_name, true) from pgque.queue");
	}

	@Test
	void nothingIsLostAndSpaceComesBack() {
		String queue = this.engine.queue("c1", "c2");
		rotateAlways(queue);
		List<Message> first = new ArrayList<>();
		List<Message> second = new ArrayList<>();
		Set<Integer> tickSlots = new HashSet<>();
		Set<Integer> cursorSlots = new HashSet<>();
		for (int i = 0; i < ROUNDS; i++) {
			this.engine.send(queue, 2);
			this.engine.tick(queue);
			first.addAll(this.engine.drain(queue, "c1"));
			if (i % 3 == 0) {
				second.addAll(this.engine.drain(queue, "c2"));
			}
			maint();
			tickSlots.add(slot("tick"));
			cursorSlots.add(slot("cursor"));
		}
		second.addAll(this.engine.drain(queue, "c2"));
		assertThat(first).extracting(Message::id).isEqualTo(LongStream.rangeClosed(1, 2 * ROUNDS).boxed().toList());
		assertThat(second).extracting(Message::id).isEqualTo(LongStream.rangeClosed(1, 2 * ROUNDS).boxed().toList());
		assertThat(tickSlots).containsExactlyInAnyOrder(0, 1, 2);
		assertThat(cursorSlots).containsExactlyInAnyOrder(0, 1, 2);
		assertThat(this.engine.value(Integer.class, "select count(*) from pgque.tick")).isLessThan(ROUNDS);
		assertThat(this.engine.value(Integer.class, "select count(*) from pgque_internal.cursor")).isLessThan(50);
	}

	@Test
	void idleEngineEmptiesAllButOneSlot() {
		String queue = this.engine.queue("c");
		rotateAlways(queue);
		for (int i = 0; i < 60; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
		}
		this.engine.drain(queue, "c");
		for (int i = 0; i < 12; i++) {
			maint();
		}
		assertThat(this.engine.value(Integer.class,
				"select count(distinct tick_id) from pgque.tick where tick_queue = ?", this.engine.idOf(queue)))
			.isEqualTo(20);
		assertThat(this.engine.value(Integer.class, "select count(*) from pgque_internal.cursor")).isLessThan(10);
	}

	@Test
	void newestTicksAreKept() {
		String queue = this.engine.queue("c");
		rotateAlways(queue);
		for (int i = 0; i < ROUNDS; i++) {
			this.engine.send(queue, 1);
			long newest = this.engine.tick(queue);
			this.engine.drain(queue, "c");
			maint();
			assertThat(ticks(queue))
				.containsAll(LongStream.rangeClosed(Math.max(1, newest - 19), newest).boxed().toList());
			assertThat(this.engine.newestTick(queue)).isEqualTo(newest);
		}
		assertThat(ticks(queue)).hasSizeLessThan(ROUNDS);
	}

	@Test
	void consumerThatLagsManyTurnsGetsEverything() {
		String queue = this.engine.queue("c", "lagging");
		String other = this.engine.queue("c");
		for (int i = 0; i < ROUNDS; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
			this.engine.drain(queue, "c");
			this.engine.send(other, 1);
			this.engine.tick(other);
			this.engine.drain(other, "c");
			maint();
		}
		assertThat(this.engine.position(queue, "lagging")).isEqualTo(1);
		assertThat(ticks(queue)).hasSize(ROUNDS + 1);
		List<Message> messages = new ArrayList<>();
		for (List<Message> batch = this.engine.receiveBatch(queue, "lagging", 30); !batch.isEmpty(); batch = this.engine
			.receiveBatch(queue, "lagging", 30)) {
			messages.addAll(batch);
			this.engine.ack(batch.get(0).batch());
			maint();
		}
		assertThat(messages).extracting(Message::id).isEqualTo(LongStream.rangeClosed(1, ROUNDS).boxed().toList());
	}

	@Test
	void openBatchesAndPrefixesStayWhereTheyAre() {
		String queue = this.engine.queue("idle", "open", "prefix", "busy");
		this.engine.send(queue, 4);
		this.engine.tick(queue);
		List<Message> open = this.engine.receive(queue, "open");
		this.engine.row("select * from pgque.settle(?, 2, null, null, null, null)",
				this.engine.nextBatch(queue, "prefix"));
		String positions = "select co_name, sub_id, sub_last_tick, sub_next_tick, sub_batch, sub_active, sub_role"
				+ " from pgque.subscription join pgque.consumer on co_id = sub_consumer where co_name <> 'busy' order by 1";
		var before = this.engine.rows(positions);
		Set<Integer> slots = new HashSet<>();
		for (int i = 0; i < ROUNDS; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
			this.engine.drain(queue, "busy");
			maint();
			slots.add(slot("cursor"));
		}
		assertThat(slots).containsExactlyInAnyOrder(0, 1, 2);
		assertThat(this.engine.rows(positions)).isEqualTo(before).hasSize(3);
		assertThat(this.engine.receive(queue, "open")).isEqualTo(open);
		assertThat(this.engine.receive(queue, "prefix")).extracting(Message::id).containsExactly(3L, 4L);
		assertThat(this.engine.drain(queue, "idle")).hasSize(ROUNDS + 4);
		assertThat(this.engine.ack(open.get(0).batch())).isEqualTo(1);
	}

	@Test
	void positionsOfEndedSubscriptionsGo() {
		String queue = this.engine.queue("c", "ended");
		long sub = this.engine.value(Long.class, "select max(sub_no) from pgque_internal.sub");
		this.engine.value(Integer.class, "select pgque.unsubscribe(?, 'ended')", queue);
		for (int i = 0; i < 8; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
			this.engine.drain(queue, "c");
			maint();
		}
		assertThat(this.engine.rows("select * from pgque_internal.cursor where cur_sub = ?", sub)).isEmpty();
	}

	@Test
	void ticksOfADroppedQueueHoldNothingUp() {
		String queue = this.engine.queue("c");
		for (int i = 0; i < 50; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
		}
		this.engine.value(Integer.class, "select pgque.drop_queue(?, true)", queue);
		for (int i = 0; i < 6; i++) {
			maint();
		}
		assertThat(this.engine.row("select count(*), sum(pg_relation_size(t)) from pgque.tick right join"
				+ " unnest('{pgque.tick_0,pgque.tick_1,pgque.tick_2}'::regclass[]) t on true"))
			.isEqualTo(tuple(3L, java.math.BigDecimal.ZERO));
	}

	@Test
	void slotInUseIsLeftForTheNextCall() throws SQLException {
		this.engine.queue("c");
		for (String ring : new String[] { "tick", "cursor" }) {
			int slot = slot(ring);
			String table = ring.equals("tick") ? "pgque.tick" : "pgque_internal.cursor";
			try (Session reader = Session.transactional(this.database)) {
				reader.run("select * from " + table + "_" + (slot + 1) % 3);
				long start = System.nanoTime();
				assertThat(this.engine.warnings("select pgque.maint()")).isEmpty();
				assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(2));
				assertThat(slot(ring)).isEqualTo(slot);
				reader.connection().rollback();
			}
			maint();
			assertThat(slot(ring)).isEqualTo((slot + 1) % 3);
		}
	}

	@Test
	void ringTurnsWhenItIsBothLargeAndOld() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		this.engine.drain(queue, "c");
		for (String ring : new String[] { "tick", "cursor" }) {
			int slot = slot(ring);
			this.engine.update("update pgque_internal.ring set ring_min_age = '1 hour', ring_switched = now()");
			maint();
			assertThat(slot(ring)).as("not old").isEqualTo(slot);
			this.engine
				.update("update pgque_internal.ring set ring_min_bytes = 1000000, ring_switched = now() - interval"
						+ " '2 hours'");
			maint();
			assertThat(slot(ring)).as("not large").isEqualTo(slot);
			this.engine.update("update pgque_internal.ring set ring_min_bytes = 1 where ring_name = ?", ring);
			maint();
			assertThat(slot(ring)).isEqualTo((slot + 1) % 3);
		}
	}

	@Test
	void smallRingsDoNotTurn() {
		this.engine.update("update pgque_internal.ring set ring_min_bytes = default, ring_min_age = default");
		String queue = this.engine.queue("c");
		int tick = slot("tick");
		int cursor = slot("cursor");
		for (int i = 0; i < 5; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
			this.engine.drain(queue, "c");
			maint();
		}
		assertThat(slot("tick")).isEqualTo(tick);
		assertThat(slot("cursor")).isEqualTo(cursor);
	}

	@Test
	void tickStandingTwiceCountsOnce() {
		String queue = this.engine.queue("c");
		for (int i = 0; i < 5; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
		}
		this.engine
			.update("insert into pgque.tick select (t).tick_queue, (t).tick_id, (t).tick_time, (t).tick_snapshot,"
					+ " (t).tick_event_seq, (t).tick_event_slots, (t).tick_xid, ((t).tick_slot + 1) % 3 from pgque.tick t"
					+ " where tick_queue = ?", this.engine.idOf(queue));
		assertThat(this.engine.rows("select * from pgque.get_queue_info(?)", queue)).hasSize(1);
		assertThat(this.engine.rows("select * from pgque.get_consumer_info(?)", queue)).hasSize(1);
		assertThat(this.engine.receive(queue, "c")).hasSize(1);
		assertThat(this.engine.row("select tick_id, prev_tick_id from pgque.get_batch_info(?)",
				this.engine.openBatch(queue, "c")))
			.isEqualTo(tuple(2L, 1L));
		this.engine.ack(this.engine.openBatch(queue, "c"));
		assertThat(this.engine
			.row("select prev_tick_id, cur_tick_id from pgque.next_batch_custom(?, 'c', null, 4, null)", queue))
			.isEqualTo(tuple(2L, 6L));
		assertThat(this.engine.receiveBatch(queue, "c", 100)).extracting(Message::id).containsExactly(2L, 3L, 4L, 5L);
		this.engine.send(queue, 1);
		assertThat(this.engine.tick(queue)).isEqualTo(7);
		this.engine.age(queue, "1 hour");
		assertThat(this.engine.value(Long.class, "select pgque.ticker(?)", queue)).isEqualTo(8);
	}

	private int maint() {
		return this.engine.value(Integer.class, "select pgque.maint()");
	}

	private int slot(String ring) {
		return this.engine.value(Integer.class, "select ring_slot from pgque_internal.ring where ring_name = ?", ring);
	}

	private List<Long> ticks(String queue) {
		return this.engine.values(Long.class, "select distinct tick_id from pgque.tick where tick_queue = ?",
				this.engine.idOf(queue));
	}

}
