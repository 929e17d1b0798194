package io.pgque.engine;

import java.sql.SQLException;
import java.util.List;
import java.util.stream.Collectors;

import org.assertj.core.groups.Tuple;
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
 * Places of messages in the order of their keys.
 */
@PgqueDatabase
class HoldTests {

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void subscribe() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.calls.integer("select pgque.subscribe(?, 'c')", this.queue);
	}

	@Test
	void withoutFailuresNobodyHasAPlace() {
		List<Message> batch = sendAndReceive("A", "B", null);
		assertThat(places(batch)).isEmpty();
		assertThat(settle(batch, null, "{}", "{}", "{}")).isEqualTo(tuple(true, 0, "{}"));
		assertThat(heldKeys()).isEmpty();
	}

	@Test
	void failedAndHeldBackMessagesGetPlacesInTheOrderOfTheBatch() {
		List<Message> batch = sendAndReceive("A", "B", "A", "A");
		assertThat(settle(batch, null, "{1}", "{4,3}", "{}")).as("what is held back is not counted")
			.isEqualTo(tuple(true, 1, "{}"));
		assertThat(retries()).containsExactly(tuple(1L, 1, true), tuple(3L, null, true), tuple(4L, null, true));
		assertThat(heldKeys()).containsExactly(tuple("c", "A", 1L, true, 2L));
		List<Message> next = sendAndReceive("A", "B");
		assertThat(places(next)).as("behind all others").containsExactly("5 last after 4");
		assertThat(settle(next, null, "{}", "{5}", "{}")).isEqualTo(tuple(true, 0, "{}"));
		this.calls.redeliver(this.queue);
		batch = receive();
		assertThat(batch).extracting(Message::id, Message::retryCount)
			.containsExactly(tuple(1L, 1), tuple(3L, null), tuple(4L, null), tuple(5L, null));
		assertThat(places(batch)).containsExactly("1 first", "3 after 1", "4 after 3", "5 after 4");
		assertThat(heldKeys()).as("on its way").containsExactly(tuple("c", "A", 1L, null, 3L));
		assertThat(settle(batch, null, "{}", "{}", "{1,3,4,5}")).isEqualTo(tuple(true, 0, "{}"));
		assertThat(heldKeys()).isEmpty();
	}

	@Test
	void placesAreKeptUntilTheMessageIsDone() {
		settle(sendAndReceive("A", "A"), null, "{1}", "{2}", "{}");
		this.calls.redeliver(this.queue);
		List<Message> batch = receive();
		assertThat(settle(batch, null, "{1}", "{2}", "{1}")).isEqualTo(tuple(true, 1, "{}"));
		assertThat(retries()).containsExactly(tuple(1L, 2, true), tuple(2L, null, true));
		this.calls.redeliver(this.queue);
		batch = receive();
		assertThat(places(batch)).containsExactly("1 first", "2 after 1");
		assertThat(settle(batch, null, "{2}", "{}", "{1,2}")).isEqualTo(tuple(true, 1, "{}"));
		assertThat(heldKeys()).containsExactly(tuple("c", "A", 2L, true, 0L));
	}

	@Test
	void deadLetterLosesItsPlaceAndTheNextIsDueAtOnce() {
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '1')", this.queue);
		settle(sendAndReceive("A", "A"), null, "{1}", "{2}", "{}");
		this.calls.redeliver(this.queue);
		List<Message> batch = receive();
		assertThat(settle(batch, null, "{1}", "{2}", "{1}")).isEqualTo(tuple(true, 0, "{1}"));
		assertThat(heldKeys()).extracting((key) -> key.toList().get(2)).containsExactly(2L);
		assertThat(this.calls.integer("select pgque.maint_retry_events()")).isOne();
		this.calls.tick(this.queue);
		assertThat(places(receive())).containsExactly("2 first");
	}

	@Test
	void messageOfALowerIdThatCommittedLaterComesLater() throws SQLException {
		try (Session sender = Session.transactional(this.database)) {
			sender.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'A', null, null, null)", this.queue);
			settle(sendAndReceive("A"), null, "{2}", "{}", "{}");
			sender.connection().commit();
		}
		this.calls.tick(this.queue);
		List<Message> batch = receive();
		assertThat(places(batch)).containsExactly("1 last after 2");
		settle(batch, null, "{}", "{1}", "{}");
		this.calls.redeliver(this.queue);
		batch = receive();
		assertThat(places(batch)).containsExactly("1 after 2", "2 first");
		assertThat(settle(batch, null, "{}", "{1}", "{2}")).isEqualTo(tuple(true, 0, "{}"));
		assertThat(retries()).as("due at once").containsExactly(tuple(1L, null, false));
	}

	@Test
	void prefixHasItsOwnPlaces() {
		List<Message> batch = sendAndReceive("A", "A", "B", "A");
		assertThat(settle(batch, 2L, "{1}", "{2}", "{}")).isEqualTo(tuple(true, 1, "{}"));
		batch = receive();
		assertThat(places(batch)).containsExactly("4 last after 2");
		assertThat(this.calls.error(SETTLE, batch.get(0).batch(), 3L, "{}", "{4}", "{}"))
			.satisfies(raised("behind the settled part", "3"));
		assertThat(receive()).extracting(Message::id).containsExactly(3L, 4L);
	}

	@Test
	void whatIsNotOfTheBatchOrHasNoKeyIsNotHeldBack() {
		List<Message> batch = sendAndReceive("A", null);
		for (String ids : List.of("{77}", "{2}", "{1,77}", "{NULL}")) {
			assertThat(this.calls.error(SETTLE, batch.get(0).batch(), null, "{}", ids, "{}"))
				.satisfies(raised("1 are not of batch " + batch.get(0).batch()));
		}
		assertThat(receive()).extracting(Message::batch).containsOnly(batch.get(0).batch());
		assertThat(retries()).isEmpty();
		assertThat(settle(batch, null, "{2}", "{}", "{}")).as("without a key").isEqualTo(tuple(true, 1, "{}"));
		assertThat(heldKeys()).isEmpty();
	}

	@Test
	void staleIdSettlesNothing() {
		List<Message> batch = sendAndReceive("A");
		this.calls.settle(batch.get(0).batch());
		assertThat(settle(batch, null, "{1}", "{2}", "{}")).isEqualTo(tuple(false, 0, "{}"));
		assertThat(heldKeys()).isEmpty();
		assertThat(this.calls.error("select * from pgque.key_places(987654321, '{1}', '{A}')"))
			.satisfies(raised("batch not found: 987654321"));
	}

	@Test
	void groupHasNoOrder() {
		this.calls.integer("select pgque.subscribe_subconsumer(?, 'g', 'm', false)", this.queue);
		this.calls.sendKeyed(this.queue, "A", "1");
		this.calls.tick(this.queue);
		Message message = this.calls.messages("select * from pgque.receive_coop(?, 'g', 'm')", this.queue).get(0);
		assertThat(this.calls.error(SETTLE, message.batch(), null, "{1}", "{}", "{}"))
			.satisfies(raised("settle_holding: consumer g on " + this.queue, "cooperative group"));
	}

	@Test
	void messagesThatFailTogetherKeepTheirOrder() {
		settle(sendAndReceive("A", "A", "A"), null, "{3,1,2}", "{}", "{}");
		this.calls.redeliver(this.queue);
		assertThat(places(receive())).containsExactly("1 first", "2 after 1", "3 after 2");
	}

	@Test
	void keysOfAnyLengthFit() {
		String key = "ä".repeat(20_000);
		settle(sendAndReceive(key, key), null, "{1}", "{2}", "{}");
		this.calls.redeliver(this.queue);
		assertThat(places(receive())).containsExactly("1 first", "2 after 1");
	}

	@Test
	void othersHaveTheirOwnPlaces() {
		this.calls.integer("select pgque.subscribe(?, 'd')", this.queue);
		settle(sendAndReceive("A", "A"), null, "{1}", "{2}", "{}");
		assertThat(places(this.calls.messages(RECEIVE, this.queue, "d"))).isEmpty();
	}

	@Test
	void placesEndWithTheSubscriptionAndTheQueue() {
		settle(sendAndReceive("A", "A"), null, "{1}", "{2}", "{}");
		this.calls.integer("select pgque.unsubscribe(?, 'c')", this.queue);
		assertThat(heldKeys()).isEmpty();
		this.calls.integer("select pgque.subscribe(?, 'c')", this.queue);
		settle(sendAndReceive("A"), null, "{3}", "{}", "{}");
		long before = this.calls.id("select count(*) from pgque_internal.hold");
		this.calls.integer("select pgque.drop_queue(?, true)", this.queue);
		assertThat(this.calls.id("select count(*) from pgque_internal.hold")).isEqualTo(before - 1);
	}

	@Test
	void moveOfTheConsumerLeavesThePlacesOfWhatStillComes() {
		settle(sendAndReceive("A", "A", "B"), null, "{1,3}", "{2}", "{}");
		this.calls.update("update pgque.retry_queue set ev_retry_after = now() where ev_id < 3");
		this.calls.integer("select pgque.maint_retry_events()");
		this.calls.tick(this.queue);
		this.calls.integer("select pgque.register_consumer_at(?, 'c', ?)", this.queue,
				this.calls.newestTick(this.queue));
		assertThat(heldKeys()).as("of A nothing comes any more").containsExactly(tuple("c", "B", 3L, true, 0L));
	}

	@Test
	void moveThroughTheViewDoesSoToo() {
		settle(sendAndReceive("A"), null, "{1}", "{}", "{}");
		this.calls.redeliver(this.queue);
		this.calls.update(
				"update pgque.subscription set sub_last_tick = ? where sub_consumer ="
						+ " (select co_id from pgque.consumer where co_name = 'c') and sub_queue ="
						+ " (select queue_id from pgque.queue where queue_name = ?)",
				this.calls.newestTick(this.queue), this.queue);
		assertThat(heldKeys()).isEmpty();
	}

	@Test
	void nextInstanceFindsNoPlacesOfWhatOthersHaveSettled() {
		settle(sendAndReceive("A", "A", "B"), null, "{1,3}", "{2}", "{}");
		this.calls.redeliver(this.queue);
		List<Message> batch = receive();
		this.calls.row("select * from pgque.settle(?, 2, '{1}', '{1 hour}', '{x}', '{f}')", batch.get(0).batch());
		assertThat(heldKeys()).as("nobody has looked").hasSize(2);
		this.calls.row("select pgque.instance_beat('hold')");
		this.calls.id("select pgque.lease_acquire(?, 'c', 'hold', '1 minute')", this.queue);
		assertThat(heldKeys()).as("the one waits, the other is in the rest of the batch")
			.containsExactly(tuple("c", "A", 1L, true, 0L), tuple("c", "B", 3L, null, 0L));
	}

	@Test
	void maintenanceLooksAfterOldPlaces() {
		settle(sendAndReceive("A", "A"), null, "{1}", "{2}", "{}");
		this.calls.redeliver(this.queue);
		this.calls.row("select * from pgque.settle(?, 1, '{}', '{}', '{}', '{}')", receive().get(0).batch());
		this.calls.integer("select pgque.maint()");
		assertThat(heldKeys()).as("too young").containsExactly(tuple("c", "A", 1L, null, 1L));
		this.calls.update("update pgque_internal.hold set hold_checked = now() - interval '2 hours'");
		this.calls.integer("select pgque.maint()");
		assertThat(heldKeys()).containsExactly(tuple("c", "A", 2L, null, 0L));
		assertThat(this.calls.value(Boolean.class,
				"select bool_and(hold_checked > now() - interval '1 minute')" + " from pgque_internal.hold"))
			.isTrue();
	}

	@Test
	void placesMoveWithTheirKeysToOtherSlotsAndBack() {
		settle(sendAndReceive("A", "B", "A", "B", "C"), null, "{1,2}", "{3,4}", "{}");
		List<Tuple> before = heldKeys();
		assertThat(before).hasSize(2);
		for (int slots : new int[] { 3, 2, 0 }) {
			assertThat(this.calls.value(Boolean.class, "select pgque.change_partitions(?, 'c', ?)", this.queue, slots))
				.isTrue();
			assertThat(heldKeys()).isEqualTo(before);
			assertThat(this.calls.integer("""
					select count(*)::int from pgque_internal.hold h
					join pgque_internal.sub s on s.sub_no = h.hold_sub
					join pgque.queue q on q.queue_id = s.sub_queue
					where q.queue_name = ?
					  and s.sub_part is not distinct from case when ? > 0 then pgque.slot_of(h.hold_key, ?) end
					""", this.queue, slots, Math.max(slots, 1))).isEqualTo(4);
		}
		this.calls.redeliver(this.queue);
		assertThat(places(receive())).containsExactly("1 first", "2 first", "3 after 1", "4 after 2");
	}

	@Test
	void restoredQueueKeepsTheOrder() {
		settle(sendAndReceive("A", "A"), null, "{1}", "{2}", "{}");
		this.calls.redeliver(this.queue);
		this.calls.update(
				"update pgque.tick set tick_snapshot = '9999999:9999999:' where tick_queue ="
						+ " (select queue_id from pgque.queue where queue_name = ?) and tick_id = ?",
				this.queue, this.calls.newestTick(this.queue));
		assertThat(this.calls.id("select pgque.repair_queue(?)", this.queue)).isEqualTo(2);
		this.calls.tick(this.queue);
		assertThat(places(receive())).containsExactly("1 first", "2 after 1");
	}

	private static final String RECEIVE = "select * from pgque.receive_batch(?, ?, 10000, 1000000000)";

	private static final String SETTLE = """
			select settled, retried, dead_ids::text from (
			    values (?::bigint, ?::bigint, ?::bigint[], ?::bigint[], ?::bigint[])
			) v (batch, upto, nacks, held, done)
			cross join lateral pgque.settle_holding(batch, upto, nacks, array(select interval '1 hour' from unnest(nacks)),
			    array(select 'why' from unnest(nacks)), array(select false from unnest(nacks)), held, done)
			""";

	private List<Message> sendAndReceive(@Nullable String... keys) {
		for (String key : keys) {
			this.calls.sendKeyed(this.queue, key, "payload");
		}
		this.calls.tick(this.queue);
		return receive();
	}

	private List<Message> receive() {
		return this.calls.messages(RECEIVE, this.queue, "c");
	}

	private Tuple settle(List<Message> batch, @Nullable Long upTo, String nacks, String held, String done) {
		return this.calls.row(SETTLE, batch.get(0).batch(), upTo, nacks, held, done);
	}

	/**
	 * Where messages of a batch stand, in words.
	 */
	private List<String> places(List<Message> batch) {
		String ids = batch.stream().map((message) -> "" + message.id()).collect(Collectors.joining(",", "{", "}"));
		Object[] keys = batch.stream().map(Message::extra1).toArray();
		return this.calls.values(String.class,
				"""
						select msg_id || case when place is null then ' last' else '' end
						    || coalesce(' after ' || (select h.hold_msg from pgque_internal.hold h where h.hold_place = p.after), ' first')
						from pgque.key_places(?, ?::bigint[], array(select m.extra1 from jsonb_array_elements_text(?::jsonb) m (extra1))) p
						order by msg_id
						""",
				batch.get(0).batch(), ids, json(keys));
	}

	private static String json(@Nullable Object[] keys) {
		return java.util.Arrays.stream(keys)
			.map((key) -> (key != null) ? "\"" + key + "\"" : "null")
			.collect(Collectors.joining(",", "[", "]"));
	}

	/**
	 * What waits to come again: id, redeliveries, whether it is due later than now.
	 */
	private List<Tuple> retries() {
		return this.calls.rows("select ev_id, ev_retry, ev_retry_after > now() from pgque.retry_queue"
				+ " join pgque.queue on queue_id = ev_queue where queue_name = ? order by ev_id", this.queue);
	}

	private List<Tuple> heldKeys() {
		return this.calls.rows(
				"select consumer_name, key, msg_id, due > now(), waiting from pgque.held_keys(?)" + " order by key",
				this.queue);
	}

}
