package io.pgque.engine;

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
import static org.assertj.core.api.Assertions.tuple;

/**
 * Where slots start, how they get over what is not theirs, and what becomes of a
 * consumer's position when its kind changes.
 */
@PgqueDatabase
class LateSlotTests {

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	private int tick;

	@BeforeEach
	void createQueue() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
	}

	@Test
	void aSlotThatIsSubscribedAloneStartsAtItsOwnTime() {
		subscribe(0, 2);
		sendKeyed("tenant-a", "tenant-b");
		subscribe(1, 2);
		sendKeyed("tenant-a", "tenant-b");
		assertThat(drain(0, 2)).containsExactly("tenant-a 1", "tenant-a 2");
		assertThat(drain(1, 2)).containsExactly("tenant-b 2");
	}

	@Test
	void allSlotsSubscribedTogetherStartAtOnePosition() {
		assertThat(subscribeAll(3)).isEqualTo(3);
		long tick = this.calls.newestTick(this.queue);
		assertThat(this.calls.values(Long.class,
				"select last_tick from pgque.partition_slot_status where queue_name = ?", this.queue))
			.containsExactly(tick, tick, tick);
		assertThat(subscribeAll(3)).isZero();
	}

	@Test
	void missingSlotsJoinAtThePositionOfTheSlowest() {
		subscribe(0, 2);
		sendKeyed("tenant-a", "tenant-b");
		sendKeyed("tenant-a", "tenant-b");
		claim(0, 2);
		receive(0, 2);
		ack(0, 2);
		assertThat(subscribeAll(2)).isEqualTo(1);
		assertThat(drain(0, 2)).containsExactly("tenant-a 2");
		assertThat(drain(1, 2)).containsExactly("tenant-b 2");
	}

	@Test
	void aSlotPassesOverEverythingThatIsNotItsOwnAtOnce() {
		subscribeAll(2);
		long start = this.calls.newestTick(this.queue);
		for (int i = 0; i < 37; i++) {
			sendKeyed("tenant-b");
		}
		sendKeyed("tenant-a");
		for (int i = 0; i < 20; i++) {
			sendKeyed("tenant-b");
		}
		claim(0, 2);
		assertThat(Message.payloads(receive(0, 2))).containsExactly("tenant-a 38");
		assertThat(this.calls.subscription(this.queue, "c#0/2").toList()).element(1).isEqualTo(start + 37);
		assertThat(this.calls.subscription(this.queue, "c#0/2").toList()).element(3).isEqualTo(start + 38);
		ack(0, 2);
		assertThat(receive(0, 2)).isEmpty();
		assertThat(this.calls.subscription(this.queue, "c#0/2"))
			.isEqualTo(tuple("normal", this.calls.newestTick(this.queue), null, null));
		assertThat(drain(1, 2)).hasSize(57);
	}

	@Test
	void everyDistanceToTheNextOwnEventIsFound() {
		subscribeAll(2);
		List<String> expected = new ArrayList<>();
		int tick = 0;
		for (int distance : new int[] { 0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 0, 0 }) {
			for (int i = 0; i < distance; i++) {
				sendKeyed("tenant-b");
				tick++;
			}
			sendKeyed("tenant-a");
			expected.add("tenant-a " + ++tick);
		}
		assertThat(drain(0, 2)).containsExactlyElementsOf(expected);
	}

	@Test
	void aPlainConsumerBecomesPartitionedWhereItStands() {
		this.calls.integer("select pgque.subscribe(?, 'c')", this.queue);
		sendKeyed("tenant-a", "tenant-b");
		sendKeyed("tenant-a", "tenant-b");
		Message message = this.calls.messages("select * from pgque.receive(?, 'c')", this.queue).get(0);
		assertThat(this.calls.error("select pgque.change_partitions(?, 'c', 2)", this.queue))
			.satisfies(raised("cannot convert active normal consumer c"));
		this.calls.nack(message.batch(), message.id());
		this.calls.integer("select pgque.ack(?)", message.batch());
		assertThat(change(2)).isTrue();
		assertThat(this.calls.isSubscribed(this.queue, "c")).isFalse();
		this.calls.redeliver(this.queue);
		assertThat(drain(1, 2)).containsExactly("tenant-b 2");
		assertThat(drain(0, 2)).as("with what was to be redelivered").containsExactly("tenant-a 2", "tenant-a 1");
	}

	@Test
	void aRedeliveryThatLiesInTheLogFollowsItsKey() {
		this.calls.integer("select pgque.subscribe(?, 'c')", this.queue);
		sendKeyed("tenant-a", "tenant-b");
		for (Message message : this.calls.messages("select * from pgque.receive(?, 'c')", this.queue)) {
			this.calls.nack(message.batch(), message.id());
		}
		this.calls.integer("select pgque.ack(sub_batch) from pgque.subscription where sub_batch is not null");
		this.calls.redeliver(this.queue);
		assertThat(change(2)).isTrue();
		this.calls.redeliver(this.queue);
		assertThat(drain(0, 2)).containsExactly("tenant-a 1");
		assertThat(drain(1, 2)).containsExactly("tenant-b 1");
		assertThat(change(0)).isTrue();
		assertThat(this.calls.messages("select * from pgque.receive(?, 'c')", this.queue)).isEmpty();
	}

	@Test
	void slotsReadUpToTheChangeBeforeTheirSuccessors() {
		subscribeAll(2);
		sendKeyed("tenant-a", "tenant-b");
		claim(0, 2);
		receive(0, 2);
		assertThat(change(3)).isFalse();
		assertThat(change(3)).isFalse();
		assertThat(this.calls.error("select pgque.change_partitions(?, 'c', 5)", this.queue))
			.satisfies(raised("is changing to n=3 already"));
		sendKeyed("tenant-a", "tenant-b");
		assertThat(drain(0, 2)).as("not beyond the change").containsExactly("tenant-a 1");
		assertThat(change(3)).isFalse();
		assertThat(drain(1, 2)).containsExactly("tenant-b 1");
		this.calls.integer("select pgque.maint()");
		assertThat(this.calls.error("select * from pgque.receive_partitioned(?, 'c', 0, 2, 'w0')", this.queue))
			.satisfies(raised("n=3"));
		assertThat(this.calls.error("select * from pgque.receive_partitioned(?, 'c', 0, 3, 'w0')", this.queue))
			.satisfies(raised("not leased"));
		assertThat(change(3)).isTrue();
		List<@Nullable String> rest = new ArrayList<>();
		for (int slot = 0; slot < 3; slot++) {
			rest.addAll(drain(slot, 3));
		}
		assertThat(rest).containsExactlyInAnyOrder("tenant-a 2", "tenant-b 2");
		assertThat(this.calls.values(Long.class,
				"select epoch from pgque.partition_slot_status where queue_name = ? and slot = 0", this.queue))
			.as("the old owner's has ended")
			.containsExactly(3L);
	}

	@Test
	void retriesOfSlotsWaitForTheirSuccessors() {
		subscribeAll(2);
		sendKeyed("tenant-a", "tenant-b");
		claim(0, 2);
		Message message = receive(0, 2).get(0);
		assertThat(change(1)).isFalse();
		this.calls.row("select pgque.nack_partitioned(?, 'c', 0, 2, 'w0', row(?, null, null, null, null, null, null,"
				+ " null, null, null)::pgque.message)", this.queue, message.id());
		ack(0, 2);
		this.calls.redeliver(this.queue);
		assertThat(drain(0, 2)).isEmpty();
		assertThat(drain(1, 2)).hasSize(1);
		assertThat(change(1)).isTrue();
		this.calls.redeliver(this.queue);
		assertThat(drain(0, 1)).containsExactly("tenant-a 1");
	}

	@Test
	void slotsBecomeAPlainConsumerWithTheirDeadLetters() {
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '0')", this.queue);
		subscribeAll(2);
		sendKeyed("tenant-a");
		claim(0, 2);
		Message message = receive(0, 2).get(0);
		this.calls.row("select pgque.nack_partitioned(?, 'c', 0, 2, 'w0', row(?, null, null, null, null, null, null,"
				+ " null, null, null)::pgque.message)", this.queue, message.id());
		ack(0, 2);
		sendKeyed("tenant-b");
		drain(1, 2);
		assertThat(change(0)).isTrue();
		assertThat(this.calls.rows("select from pgque.partition_slot_status where queue_name = ?", this.queue))
			.isEmpty();
		long letter = this.calls.id("select dl_id from pgque.dead_letters(?, 1)", this.queue);
		assertThat(this.calls.id("select pgque.dlq_redeliver(?)", letter)).isEqualTo(message.id());
		this.calls.tick(this.queue);
		assertThat(this.calls.messages("select * from pgque.receive_batch(?, 'c', 10, 1000)", this.queue))
			.extracting(Message::payload)
			.containsExactly("tenant-a 1");
	}

	@Test
	void changesAreRefusedWhereTheyMakeNoSense() {
		assertThat(this.calls.error("select pgque.change_partitions('nowhere', 'c', 2)"))
			.satisfies(raised("queue not found: nowhere"));
		assertThat(this.calls.error("select pgque.change_partitions(?, 'c', 2)", this.queue))
			.satisfies(raised("Not subscriber to queue: " + this.queue + "/c"));
		for (String n : new String[] { "-1", "null" }) {
			assertThat(this.calls.error("select pgque.change_partitions(?, 'c', " + n + ")", this.queue))
				.satisfies(raised("number of slots must be >= 0"));
		}
		this.calls.integer("select pgque.register_subconsumer(?, 'c', 'member')", this.queue);
		assertThat(this.calls.error("select pgque.change_partitions(?, 'c', 2)", this.queue))
			.satisfies(raised("is shared by a cooperative group"));
		assertThat(this.calls.error("select pgque.subscribe_slots(?, 'c', 2)", this.queue))
			.satisfies(raised("already registered, and not partitioned"));
		this.calls.integer("select pgque.unregister_subconsumer(?, 'c', 'member')", this.queue);
		assertThat(change(0)).as("is plain").isTrue();
	}

	/**
	 * Send an event for each key, its payload the key and the number of the tick behind
	 * them.
	 */
	private void sendKeyed(String... keys) {
		this.tick++;
		for (String key : keys) {
			this.calls.sendKeyed(this.queue, key, key + " " + this.tick);
		}
		this.calls.tick(this.queue);
	}

	private void subscribe(int slot, int n) {
		this.calls.row("select pgque.subscribe_slot(?, 'c', ?, ?)", this.queue, slot, n);
	}

	private int subscribeAll(int n) {
		return this.calls.integer("select pgque.subscribe_slots(?, 'c', ?)", this.queue, n);
	}

	private boolean change(int n) {
		return Boolean.TRUE
			.equals(this.calls.value(Boolean.class, "select pgque.change_partitions(?, 'c', ?)", this.queue, n));
	}

	private void claim(int slot, int n) {
		this.calls.id("select pgque.claim_slot(?, 'c', ?, 'w' || ?)", this.queue, slot, slot);
	}

	private List<Message> receive(int slot, int n) {
		return this.calls.messages("select * from pgque.receive_partitioned(?, 'c', ?, ?, 'w' || ?)", this.queue, slot,
				n, slot);
	}

	private int ack(int slot, int n) {
		return this.calls.integer("select pgque.ack_partitioned(?, 'c', ?, ?, 'w' || ?)", this.queue, slot, n, slot);
	}

	/**
	 * Receive and ack until nothing comes.
	 */
	private List<@Nullable String> drain(int slot, int n) {
		claim(slot, n);
		List<@Nullable String> all = new ArrayList<>();
		List<Message> batch = receive(slot, n);
		while (!batch.isEmpty()) {
			all.addAll(Message.payloads(batch));
			assertThat(ack(slot, n)).isEqualTo(1);
			batch = receive(slot, n);
		}
		return all;
	}

}
