package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.SqlCalls.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static io.pgque.engine.SqlCalls.SqlError.raised;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Slots of partitioned consumers: subscribing, claiming and reading them.
 */
@PgqueDatabase
class PartitionTests {

	private static final String NOT_PARTITIONED = "is not a partitioned consumer";

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
	}

	@ParameterizedTest
	@CsvSource({ "tenant-a, 0", "tenant-b, 1", "tenant-c, 1", ", 0" })
	void keysBelongToTheirSlots(String key, int slot) {
		assertThat(this.calls.integer("select pgque.slot_of(?, 2)", key)).isEqualTo(slot);
		subscribeAndClaim(2);
		this.calls.sendKeyed(this.queue, key, "x");
		this.calls.tick(this.queue);
		assertThat(Message.payloads(receive(slot, 2))).containsExactly("x");
		assertThat(receive(1 - slot, 2)).isEmpty();
	}

	@Test
	void everyKeyHasASlot() {
		assertThat(this.calls.values(Integer.class,
				"select distinct pgque.slot_of(k::text, n) - n from generate_series(1, 500) k, generate_series(1, 7) n"))
			.allMatch((distance) -> distance < 0 && distance >= -7);
		assertThat(this.calls.values(Integer.class,
				"select distinct pgque.slot_of(k::text, 7) from generate_series(1, 500) k"))
			.containsExactlyInAnyOrder(0, 1, 2, 3, 4, 5, 6);
	}

	@Test
	void eventsOfAKeyComeInOrder() {
		subscribeAndClaim(2);
		for (int i = 0; i < 10; i++) {
			this.calls.sendKeyed(this.queue, (i % 2 == 0) ? "tenant-b" : "tenant-c", "" + i);
		}
		this.calls.tick(this.queue);
		List<Message> batch = receive(1, 2);
		assertThat(Message.payloads(batch)).containsExactly("0", "1", "2", "3", "4", "5", "6", "7", "8", "9");
		assertThat(batch.get(1).extra1()).isEqualTo("tenant-c");
		assertThat(receive(1, 2)).as("until it is acked").isEqualTo(batch);
		assertThat(this.calls.messages("select * from pgque.receive_partitioned(?, 'c', 1, 2, 'w1', 3)", this.queue))
			.hasSize(3);
		assertThat(ack(1, 2)).isEqualTo(1);
		assertThat(ack(1, 2)).isZero();
		assertThat(receive(1, 2)).isEmpty();
	}

	@Test
	void subscribingASlotIsRepeatableAndFixesTheirNumber() {
		subscribe(0, 2);
		subscribe(0, 2);
		assertThat(this.calls.error("select pgque.subscribe_slot(?, 'c', 0, 3)", this.queue)).satisfies(raised("n=2"));
		assertThat(this.calls.error("select pgque.subscribe_slots(?, 'c', 3)", this.queue)).satisfies(raised("n=2"));
		assertThat(this.calls.error("select pgque.subscribe_slot(?, 'c', 2, 2)", this.queue))
			.satisfies(raised("slot 2 is out of range"));
		assertThat(this.calls.error("select pgque.subscribe_slot(?, 'c', -1, 2)", this.queue))
			.satisfies(raised("slot -1 is out of range"));
		assertThat(this.calls.subscription(this.queue, "c#0/2"))
			.isEqualTo(tuple("normal", this.calls.newestTick(this.queue), null, null));
		assertThat(this.calls.isSubscribed(this.queue, "c#1/2")).isFalse();
	}

	@ParameterizedTest
	@ValueSource(strings = { "null, 'c', 0, 2", "'q', null, 0, 2", "'q', 'c', null, 2", "'q', 'c', 0, null",
			"'q', 'c', 0, 0", "'q', 'c', 0, -1" })
	void subscribingASlotNeedsAllItsArguments(String arguments) {
		assertThat(this.calls.error("select pgque.subscribe_slot(" + arguments.replace("'q'", "?::text") + ")",
				arguments.contains("'q'") ? new Object[] { this.queue } : new Object[0]))
			.satisfies(raised("needed, not"));
		assertThat(this.calls.rows("select from pgque.partition_slot_status where queue_name = ?", this.queue))
			.isEmpty();
	}

	@Test
	void slotsNeedAQueueAndAConsumerWithAPlainName() {
		assertThat(this.calls.error("select pgque.subscribe_slot('nowhere', 'c', 0, 2)"))
			.satisfies(raised("queue not found: nowhere"));
		assertThat(this.calls.error("select pgque.subscribe_slot(?, 'c#1', 0, 2)", this.queue))
			.satisfies(raised("must not contain #"));
		assertThat(this.calls.error("select pgque.subscribe_slots(?, 'c#1', 2)", this.queue))
			.satisfies(raised("must not contain #"));
	}

	@Test
	void withItsLastSlotAConsumerIsNoLongerPartitioned() {
		subscribe(0, 2);
		subscribe(1, 2);
		unsubscribe(0);
		assertThat(this.calls.isSubscribed(this.queue, "c#0/2")).isFalse();
		assertThat(this.calls.error("select pgque.subscribe_slot(?, 'c', 0, 3)", this.queue)).satisfies(raised("n=2"));
		assertThat(this.calls.error("select pgque.unsubscribe_slot(?, 'c', 2)", this.queue))
			.satisfies(raised("slot 2 is out of range"));
		unsubscribe(1);
		subscribe(2, 3);
		this.calls.row("select pgque.unsubscribe_slot(?, 'others', 7)", this.queue);
		this.calls.row("select pgque.unsubscribe_slot('nowhere', 'c', 7)");
	}

	@Test
	void aClaimIsRenewedByItsOwnerAndRefusedToOthers() {
		subscribe(0, 2);
		assertThat(claim("w1", "1 hour")).isEqualTo(1);
		assertThat(claim("w1", "1 hour")).isEqualTo(1);
		assertThat(claim("w2", "1 hour")).isNull();
		expire(0);
		assertThat(claim("w1", "1 hour")).as("nobody took it").isEqualTo(1);
		expire(0);
		assertThat(claim("w2", "1 hour")).isEqualTo(2);
		assertThat(claim("w1", "1 hour")).isNull();
	}

	@Test
	void onlyTheOwnerReleasesAClaim() {
		subscribe(0, 2);
		assertThat(release("w1")).isFalse();
		claim("w1", "1 hour");
		assertThat(release("w2")).isFalse();
		assertThat(release(null)).isFalse();
		assertThat(release("w1")).isTrue();
		assertThat(release("w1")).isFalse();
		assertThat(claim("w2", "1 hour")).isEqualTo(2);
	}

	@Test
	void claimsNeedAWorkerATimeAndASlot() {
		assertThat(claimError("'w', '1 s'")).satisfies(raised(NOT_PARTITIONED));
		subscribe(0, 2);
		assertThat(claimError("null, '1 s'")).satisfies(raised("worker"));
		assertThat(claimError("'', '1 s'")).satisfies(raised("worker"));
		assertThat(claimError("'w', null")).satisfies(raised("ttl must be at least 1 second"));
		assertThat(claimError("'w', '0.9 s'")).satisfies(raised("ttl must be at least 1 second"));
		assertThat(this.calls.error("select pgque.claim_slot(?, 'c', 1, 'w')", this.queue))
			.satisfies(raised("not subscribed"));
		assertThat(this.calls.error("select pgque.claim_slot(?, 'c', 2, 'w')", this.queue))
			.satisfies(raised("slot 2 is out of range"));
		assertThat(this.calls.value(Long.class, "select pgque.claim_slot(?, 'c', 0, 'w')", this.queue)).isEqualTo(1);
	}

	@Test
	void guardsCheckInOrder() {
		for (String call : new String[] { "receive_partitioned(?, 'c', %s)", "ack_partitioned(?, 'c', %s)",
				"ack_partitioned(?, 'c', %s, 1)",
				"nack_partitioned(?, 'c', %s, row(1, null, null, null, null, null, null, null, null, null)::pgque.message)" }) {
			this.calls.update("delete from pgque.subscription");
			this.calls.update("delete from pgque.partition_consumer");
			assertGuard(call, "0, 2, null", "needed, not");
			assertGuard(call, "null, 2, 'w'", "needed, not");
			assertGuard(call, "0, null, 'w'", "needed, not");
			assertGuard(call, "5, 3, 'w'", NOT_PARTITIONED);
			subscribe(0, 2);
			assertGuard(call, "5, 3, 'w'", "n=2");
			assertGuard(call, "5, 2, 'w'", "slot 5 is out of range");
			assertGuard(call, "1, 2, 'w'", "not subscribed");
			assertGuard(call, "0, 2, 'w'", "not leased");
			claim("w", "1 hour");
			release("w");
			assertGuard(call, "0, 2, 'w'", "not leased");
			claim("other", "1 hour");
			assertGuard(call, "0, 2, 'w'", "held by other", "fenced");
			expire(0);
			assertGuard(call, "0, 2, 'w'", "held by other", "fenced");
		}
	}

	private void assertGuard(String call, String arguments, String... words) {
		assertThat(this.calls.error("select * from pgque." + call.formatted(arguments), this.queue))
			.satisfies(raised(words));
	}

	@Test
	void atLeastOneMessageHasToBeWanted() {
		subscribeAndClaim(2);
		for (String max : new String[] { "0", "null" }) {
			assertThat(this.calls.error("select * from pgque.receive_partitioned(?, 'c', 0, 2, 'w0', " + max + ")",
					this.queue))
				.satisfies(raised("max must be >= 1"));
		}
	}

	@Test
	void anExpiredClaimThatNobodyTookStillCountsAndIsRenewedByWork() {
		subscribeAndClaim(2);
		this.calls.sendKeyed(this.queue, "tenant-a", "x");
		this.calls.tick(this.queue);
		expire(0);
		Message message = receive(0, 2).get(0);
		assertThat(leaseIsOver(0)).isFalse();
		expire(0);
		nack(0, 2, "w0", message.id());
		assertThat(leaseIsOver(0)).isFalse();
		expire(0);
		assertThat(ack(0, 2)).isEqualTo(1);
		assertThat(leaseIsOver(0)).isFalse();
	}

	@Test
	void theHeirGetsTheOpenBatchAndTheZombieIsFenced() {
		subscribeAndClaim(2);
		this.calls.sendKeyed(this.queue, "tenant-a", "x");
		this.calls.tick(this.queue);
		List<Message> batch = receive(0, 2);
		expire(0);
		assertThat(claim("heir", "1 hour")).isEqualTo(2);
		for (String call : new String[] { "ack_partitioned(?, 'c', 0, 2, 'w0')",
				"ack_partitioned(?, 'c', 0, 2, 'w0', " + batch.get(0).batch() + ")",
				"receive_partitioned(?, 'c', 0, 2, 'w0')" }) {
			assertThat(this.calls.error("select pgque." + call, this.queue))
				.satisfies(raised("held by heir", "fenced"));
		}
		assertThat(
				this.calls.error("select * from pgque.settle(?, null, null, null, null, null)", batch.get(0).batch()))
			.satisfies(raised("ack_partitioned"));
		assertThat(this.calls.messages("select * from pgque.receive_partitioned(?, 'c', 0, 2, 'heir')", this.queue))
			.isEqualTo(batch);
		assertThat(this.calls.integer("select pgque.ack_partitioned(?, 'c', 0, 2, 'heir')", this.queue)).isEqualTo(1);
	}

	@Test
	void anAckThatNamesItsBatchFinishesNoOther() {
		subscribeAndClaim(2);
		long late = 0;
		for (String payload : new String[] { "1", "2" }) {
			this.calls.sendKeyed(this.queue, "tenant-a", payload);
			this.calls.tick(this.queue);
		}
		late = receive(0, 2).get(0).batch();
		assertThat(ack(0, 2, late)).isEqualTo(1);
		assertThat(Message.payloads(receive(0, 2))).containsExactly("2");
		assertThat(ack(0, 2, late)).as("repeated").isZero();
		assertThat(ack(0, 2, null)).isZero();
		assertThat(Message.payloads(receive(0, 2))).containsExactly("2");
	}

	@Test
	void aRedeliveryStaysOnItsSlot() {
		subscribeAndClaim(2);
		this.calls.sendKeyed(this.queue, "tenant-b", "1");
		this.calls.tick(this.queue);
		Message message = receive(1, 2).get(0);
		assertThat(nack(1, 2, "w1", message.id())).isEqualTo(1);
		assertThat(nack(1, 2, "w1", message.id())).as("repeated").isEqualTo(1);
		assertThat(
				this.calls.error(
						"select pgque.nack_partitioned(?, 'c', 1, 2, 'w1',"
								+ " row(77, null, null, null, null, null, null, null, null, null)::pgque.message)",
						this.queue))
			.satisfies(raised("msg_id 77 not found in batch " + message.batch()));
		ack(1, 2);
		assertThat(
				this.calls.error(
						"select pgque.nack_partitioned(?, 'c', 1, 2, 'w1',"
								+ " row(1, null, null, null, null, null, null, null, null, null)::pgque.message)",
						this.queue))
			.satisfies(raised("batch not found"));
		this.calls.redeliver(this.queue);
		assertThat(receive(0, 2)).isEmpty();
		assertThat(receive(1, 2)).extracting(Message::id, Message::retryCount).containsExactly(tuple(message.id(), 1));
	}

	@Test
	void aSlotGivesUpAfterTheQueuesRetries() {
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '0')", this.queue);
		subscribeAndClaim(2);
		this.calls.sendKeyed(this.queue, "tenant-b", "1");
		this.calls.tick(this.queue);
		Message message = receive(1, 2).get(0);
		nack(1, 2, "w1", message.id());
		ack(1, 2);
		assertThat(this.calls.rows("select consumer_name, dl_reason from pgque.dead_letters(?, 10)", this.queue))
			.containsExactly(tuple("c#1/2", "why"));
		long id = this.calls.id("select dl_id from pgque.dead_letters(?, 10)", this.queue);
		this.calls.id("select pgque.dlq_redeliver(?)", id);
		this.calls.tick(this.queue);
		assertThat(receive(0, 2)).isEmpty();
		assertThat(Message.payloads(receive(1, 2))).containsExactly("1");
	}

	@Test
	void plainFunctionsRefuseSlots() {
		subscribeAndClaim(2);
		this.calls.sendKeyed(this.queue, "tenant-a", "1");
		this.calls.tick(this.queue);
		Message message = receive(0, 2).get(0);
		assertThat(this.calls.error("select * from pgque.receive(?, 'c#0/2')", this.queue))
			.satisfies(raised("receive_partitioned"));
		assertThat(this.calls.error("select * from pgque.receive_batch(?, 'c#0/2', 1, 1)", this.queue))
			.satisfies(raised("receive_partitioned"));
		assertThat(this.calls.error("select pgque.ack(?)", message.batch())).satisfies(raised("ack_partitioned"));
		assertThat(this.calls.error("select pgque.nack(?, row(?, null, null, null, null, null, null, null, null, null)"
				+ "::pgque.message)", message.batch(), message.id()))
			.satisfies(raised("nack_partitioned"));
		assertThat(this.calls.error("select pgque.subscribe(?, 'never#1/3')", this.queue)).satisfies(raised("#"));
		assertThat(this.calls.values(Integer.class, "select co_id from pgque.consumer where co_name = 'never#1/3'"))
			.isEmpty();
	}

	@Test
	void theViewShowsEverySlot() {
		subscribe(1, 3);
		subscribe(2, 3);
		this.calls.row("select pgque.claim_slot(?, 'c', 1, 'w', '1 hour'), pgque.claim_slot(?, 'c', 2, 'w', '1 hour')",
				this.queue, this.queue);
		expire(2);
		long tick = this.calls.newestTick(this.queue);
		this.calls.sendTicks(this.queue, "1", "2");
		SqlCalls reader = new SqlCalls(this.database.createLogin("pgque_reader").dataSource());
		assertThat(reader
			.rows("select consumer, slot, n, lease_owner, lease_until > now(), epoch, last_tick, pending_events"
					+ " from pgque.partition_slot_status where queue_name = ? order by slot", this.queue))
			.containsExactly(tuple("c", 0, 3, null, null, 0L, null, 0L), tuple("c", 1, 3, "w", true, 1L, tick, 2L),
					tuple("c", 2, 3, null, false, 1L, tick, 2L));
		SqlCalls writer = new SqlCalls(this.database.createLogin("pgque_writer").dataSource());
		assertThat(writer.error("select * from pgque.partition_slot_status").state()).isEqualTo("42501");
	}

	private void subscribe(int slot, int n) {
		this.calls.row("select pgque.subscribe_slot(?, 'c', ?, ?)", this.queue, slot, n);
	}

	private void unsubscribe(int slot) {
		this.calls.row("select pgque.unsubscribe_slot(?, 'c', ?)", this.queue, slot);
	}

	private void subscribeAndClaim(int n) {
		this.calls.integer("select pgque.subscribe_slots(?, 'c', ?)", this.queue, n);
		this.calls.rows("select pgque.claim_slot(?, 'c', k, 'w' || k, '1 hour') from generate_series(0, ? - 1) k",
				this.queue, n);
	}

	private Long claim(String worker, String ttl) {
		return this.calls.value(Long.class, "select pgque.claim_slot(?, 'c', 0, ?, ?::interval)", this.queue, worker,
				ttl);
	}

	private SqlCalls.SqlError claimError(String arguments) {
		return this.calls.error("select pgque.claim_slot(?, 'c', 0, " + arguments + ")", this.queue);
	}

	private boolean release(String worker) {
		return Boolean.TRUE
			.equals(this.calls.value(Boolean.class, "select pgque.release_slot(?, 'c', 0, ?)", this.queue, worker));
	}

	private List<Message> receive(int slot, int n) {
		return this.calls.messages("select * from pgque.receive_partitioned(?, 'c', ?, ?, 'w' || ?)", this.queue, slot,
				n, slot);
	}

	private int ack(int slot, int n) {
		return this.calls.integer("select pgque.ack_partitioned(?, 'c', ?, ?, 'w' || ?)", this.queue, slot, n, slot);
	}

	private int ack(int slot, int n, Long batch) {
		return this.calls.integer("select pgque.ack_partitioned(?, 'c', ?, ?, 'w' || ?, ?)", this.queue, slot, n, slot,
				batch);
	}

	private int nack(int slot, int n, String worker, long message) {
		return this.calls.integer(
				"select pgque.nack_partitioned(?, 'c', ?, ?, ?, row(?, null, null, null, null, null,"
						+ " null, null, null, null)::pgque.message, '1 minute', 'why')",
				this.queue, slot, n, worker, message);
	}

	/**
	 * Let a claim have run out.
	 */
	private void expire(int slot) {
		this.calls.update("update pgque.partition_slot set lease_until = now() - interval '1 second' where slot = ?"
				+ " and queue_id = (select queue_id from pgque.queue where queue_name = ?)", slot, this.queue);
	}

	private boolean leaseIsOver(int slot) {
		return (boolean) this.calls
			.row("select lease_until < clock_timestamp() from pgque.partition_slot_status where slot = ?"
					+ " and queue_name = ?", slot, this.queue)
			.toList()
			.get(0);
	}

}
