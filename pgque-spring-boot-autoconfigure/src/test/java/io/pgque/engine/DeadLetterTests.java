package io.pgque.engine;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

import io.pgque.engine.Engine.Message;
import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for dead letters: how they come about, are read, replayed and removed.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class DeadLetterTests {

	private static final String EVENT_DEAD = "select pgque.event_dead(?, ?, ?, now(), '123'::xid8, 2, 't', 'x')";

	private final Engine engine;

	DeadLetterTests(TestDatabase database) {
		this.engine = new Engine(database);
	}

	@Test
	void reasonIsGivenOrTellsOfTheRetries() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "0");
		this.engine.send(queue, 2);
		long batch = open(queue, "c");
		this.engine.nack(batch, 1, "0", "no such card");
		this.engine.nack(batch, 2, "0", null);
		assertThat(this.engine.rows("select ev_id, dl_reason from pgque.dlq_inspect(?) order by 1", queue))
			.containsExactly(tuple(1L, "no such card"), tuple(2L, "max retries exceeded"));
	}

	@Test
	void letterHoldsTheEvent() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "0");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		long batch = open(queue, "c");
		this.engine.nack(batch, 1, "0", "bad");
		assertThat(this.engine.row("""
				select dl_queue_id, dl_consumer_id = (select co_id from pgque.consumer where co_name = 'c'), dl_reason,
				       l.ev_id, l.ev_time = b.ev_time, l.ev_txid::text::bigint = b.ev_txid, l.ev_retry, l.ev_type,
				       l.ev_data, l.ev_extra1, l.ev_extra2, l.ev_extra3, l.ev_extra4
				from pgque.dlq_inspect(?) l, pgque.get_batch_events(?) b
				""", queue, batch))
			.isEqualTo(tuple(this.engine.idOf(queue), true, "bad", 1L, true, true, null, "t", "x", "a", "b", "c", "d"));
	}

	@Test
	void repeatedNackMakesOneLetter() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "0");
		this.engine.send(queue, 1);
		long batch = open(queue, "c");
		assertThat(this.engine.nack(batch, 1, "0", "first")).isEqualTo(1);
		assertThat(this.engine.nack(batch, 1, "0", "second")).isEqualTo(1);
		assertThat(this.engine.values(String.class, "select dl_reason from pgque.dlq_inspect(?)", queue))
			.containsExactly("first");
	}

	@Test
	void consumersHaveTheirOwnLetters() {
		String queue = this.engine.queue("c1", "c2");
		this.engine.configure(queue, "max_retries", "0");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		this.engine.nack(this.engine.nextBatch(queue, "c1"), 1, "0", null);
		this.engine.nack(this.engine.nextBatch(queue, "c2"), 1, "0", null);
		assertThat(this.engine.values(String.class, "select consumer_name from pgque.dead_letters(?, 10)", queue))
			.containsExactlyInAnyOrder("c1", "c2");
	}

	@Test
	void eventDeadRecordsWhatItIsGiven() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		long batch = open(queue, "c");
		assertThat(this.engine.value(Integer.class, EVENT_DEAD, batch, 7, "by hand")).isEqualTo(1);
		assertThat(this.engine.value(Integer.class, EVENT_DEAD, batch, 7, "again")).isEqualTo(1);
		assertThat(this.engine.row("select ev_id, dl_reason, ev_txid::text, ev_retry, ev_type, ev_data, ev_extra1"
				+ " from pgque.dlq_inspect(?)", queue))
			.isEqualTo(tuple(7L, "by hand", "123", 2, "t", "x", null));
		assertThat(this.engine.value(Integer.class, "select pgque.event_dead(?, 8, null, now(), null, null, null, null,"
				+ " i_ev_extra4 => 'h', i_ev_extra1 => 'k')", batch))
			.isEqualTo(1);
		assertThat(this.engine.row("select ev_extra1, ev_extra4 from pgque.dlq_inspect(?) where ev_id = 8", queue))
			.isEqualTo(tuple("k", "h"));
	}

	@Test
	void eventDeadNeedsAnOpenBatch() {
		assertThat(this.engine.error(EVENT_DEAD, 987654321, 7, "x"))
			.isEqualTo(SqlError.raised("batch not found: 987654321"));
		assertThat(this.engine.error(EVENT_DEAD, null, 7, "x").message()).startsWith("batch not found:");
	}

	@Test
	void inspectShowsTheNewestFirst() {
		String queue = queueWithLetters(120);
		this.engine.update(
				"update pgque.dead_letter set dl_time = now() - ev_id * interval '1 minute' where dl_queue_id = ?",
				this.engine.idOf(queue));
		assertThat(this.engine.values(Long.class, "select ev_id from pgque.dlq_inspect(?, 3)", queue))
			.containsExactly(1L, 2L, 3L);
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).hasSize(100);
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?, 1000)", queue)).hasSize(120);
		assertThat(this.engine.rows("select * from pgque.dlq_inspect('nowhere')")).isEmpty();
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(null)")).isEmpty();
		assertThat(this.engine.value(String.class, "select pg_typeof(l)::text from pgque.dlq_inspect(?, 1) l", queue))
			.isEqualTo("pgque.dead_letter");
	}

	@Test
	void deadLettersTellNamesAndMayBeOfAllQueues() {
		String queue = queueWithLetters(2);
		String other = queueWithLetters(1);
		this.engine.update("update pgque.dead_letter set dl_time = now() + interval '1 hour' where dl_queue_id = ?"
				+ " and ev_id = 2", this.engine.idOf(queue));
		assertThat(this.engine.rows("select queue_name, consumer_name, dl_reason, ev_id, ev_retry, ev_type, ev_data,"
				+ " ev_extra1, ev_extra4 from pgque.dead_letters(?, 10)", queue))
			.containsExactly(tuple(queue, "c", "bad", 2L, null, "test", "payload 2", null, null),
					tuple(queue, "c", "bad", 1L, null, "test", "payload 1", null, null));
		assertThat(this.engine.values(Long.class, "select ev_id from pgque.dead_letters(?, 1)", queue))
			.containsExactly(2L);
		assertThat(this.engine.values(String.class, "select queue_name from pgque.dead_letters(null, 1000)"))
			.contains(queue, other);
		assertThat(this.engine.rows("select * from pgque.dead_letters('nowhere', 10)")).isEmpty();
	}

	@Test
	void replayIsANewEventForAllConsumers() {
		String queue = this.engine.queue("c", "other");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		bury(queue, "c");
		assertThat(this.engine.drain(queue, "other")).hasSize(1);
		this.engine.update("update pgque.dead_letter set ev_time = '2001-02-03 04:05:06+00', ev_retry = 5"
				+ " where dl_queue_id = ?", this.engine.idOf(queue));
		assertThat(replay(letterOf(queue))).isEqualTo(2);
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).isEmpty();
		this.engine.tick(queue);
		for (String consumer : new String[] { "c", "other" }) {
			assertThat(this.engine.drain(queue, consumer)).singleElement().satisfies((message) -> {
				assertThat(message).isEqualTo(
						new Message(2, message.batch(), "t", "x", null, message.createdAt(), "a", "b", "c", "d"));
				assertThat(message.createdAt().getYear()).isGreaterThan(2001);
			});
		}
	}

	@Test
	void replayOfUnknownLetter() {
		long letter = letterOf(queueWithLetters(1));
		replay(letter);
		for (String function : new String[] { "dlq_replay", "dlq_redeliver" }) {
			for (Object id : new Object[] { letter, 987654321L, null }) {
				SqlError error = this.engine.error("select pgque." + function + "(?)", id);
				assertThat(error.state()).isEqualTo("P0001");
				assertThat(error.message()).startsWith("dead letter entry not found");
			}
		}
	}

	@Test
	void letterThatCannotBeSentStays() {
		String queue = queueWithLetters(2);
		this.engine.update("update pgque.queue set queue_disable_insert = true where queue_name = ?", queue);
		for (String function : new String[] { "dlq_replay", "dlq_redeliver" }) {
			assertThat(this.engine.error("select pgque." + function + "(?)", letterOf(queue)))
				.isEqualTo(SqlError.raised("Insert into queue disallowed"));
		}
		assertThat(this.engine.row("select * from pgque.dlq_replay_all(?)", queue))
			.isEqualTo(tuple(0L, 2L, "Insert into queue disallowed"));
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).hasSize(2);
	}

	@Test
	void redeliveryIsForTheConsumerThatGaveUp() {
		String queue = this.engine.queue("c", "other");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		this.engine.tick(queue);
		Message first = this.engine.receive(queue, "c").get(0);
		bury(queue, "c");
		assertThat(this.engine.drain(queue, "other")).hasSize(1);
		assertThat(this.engine.value(Long.class, "select pgque.dlq_redeliver(?)", letterOf(queue)))
			.isEqualTo(first.id());
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).isEmpty();
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "other")).isEmpty();
		assertThat(this.engine.receive(queue, "c")).singleElement()
			.satisfies((message) -> assertThat(message).isEqualTo(
					new Message(first.id(), message.batch(), "t", "x", null, first.createdAt(), "a", "b", "c", "d")));
	}

	@Test
	void redeliveryCountsAttemptsAnew() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "1");
		this.engine.send(queue, 1);
		for (int round = 0; round < 2; round++) {
			long batch = open(queue, "c");
			this.engine.nack(batch, 1, "0", null);
			this.engine.ack(batch);
			this.engine.redeliver(queue);
			assertThat(this.engine.receive(queue, "c")).singleElement()
				.satisfies((message) -> assertThat(message.retryCount()).isEqualTo(1));
			batch = this.engine.nextBatch(queue, "c");
			this.engine.nack(batch, 1, "0", null);
			this.engine.ack(batch);
			this.engine.value(Long.class, "select pgque.dlq_redeliver(?)", letterOf(queue));
		}
	}

	@Test
	void redeliveryNeedsTheSubscription() {
		String queue = queueWithLetters(1);
		this.engine.value(Integer.class, "select pgque.unsubscribe(?, 'c')", queue);
		assertThat(this.engine.error("select pgque.dlq_redeliver(?)", letterOf(queue)))
			.isEqualTo(SqlError.raised("consumer not registered: " + queue + "/c"));
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).hasSize(1);
		this.engine.subscribe(queue, "c");
		this.engine.value(Long.class, "select pgque.dlq_redeliver(?)", letterOf(queue));
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
	}

	@Test
	void replayAllCounts() {
		String queue = queueWithLetters(3);
		assertThat(this.engine.row("select * from pgque.dlq_replay_all(?)", queue)).isEqualTo(tuple(3L, 0L, null));
		assertThat(this.engine.row("select replayed, failed, first_error from pgque.dlq_replay_all(?)", queue))
			.isEqualTo(tuple(0L, 0L, null));
		assertThat(this.engine.row("select * from pgque.dlq_replay_all('nowhere')")).isEqualTo(tuple(0L, 0L, null));
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::id, Message::payload)
			.containsExactly(tuple(4L, "payload 1"), tuple(5L, "payload 2"), tuple(6L, "payload 3"));
	}

	@Test
	void replayAllPassesOverFailures() {
		String queue = queueWithLetters(3);
		this.engine.execute("alter table pgque.event_" + this.engine.idOf(queue)
				+ " add constraint broken check (ev_data <> 'payload 2') not valid");
		var result = this.engine.row("select * from pgque.dlq_replay_all(?)", queue).toList();
		assertThat(result.subList(0, 2)).containsExactly(2L, 1L);
		assertThat(result.get(2)).asString().contains("violates check constraint");
		assertThat(this.engine.values(String.class, "select ev_data from pgque.dlq_inspect(?)", queue))
			.containsExactly("payload 2");
	}

	@Test
	void purgeRemovesWhatIsOld() {
		String queue = queueWithLetters(3);
		this.engine.update("update pgque.dead_letter set dl_time = now() - (ev_id * 20 - 12) * interval '1 day'"
				+ " where dl_queue_id = ?", this.engine.idOf(queue));
		assertThat(this.engine.value(Integer.class, "select pgque.dlq_purge(?, '40 days')", queue)).isEqualTo(1);
		assertThat(this.engine.value(Integer.class, "select pgque.dlq_purge(?)", queue)).isZero();
		assertThat(this.engine.value(Integer.class, "select pgque.dlq_purge(?, i_older_than => '20 days')", queue))
			.isEqualTo(1);
		assertThat(this.engine.values(Long.class, "select ev_id from pgque.dlq_inspect(?)", queue)).containsExactly(1L);
		assertThat(this.engine.value(Integer.class, "select pgque.dlq_purge('nowhere', '0')")).isZero();
	}

	@Test
	void endingASubscriptionElsewhereKeepsLetters() {
		String queue = queueWithLetters(1);
		String other = this.engine.queue("c");
		this.engine.value(Integer.class, "select pgque.unsubscribe(?, 'c')", queue);
		this.engine.value(Integer.class, "select pgque.unsubscribe(?, 'c')", other);
		this.engine.value(Integer.class, "select pgque.drop_queue(?)", other);
		this.engine.value(Integer.class, "select pgque.maint()");
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).hasSize(1);
	}

	private String queueWithLetters(int count) {
		String queue = this.engine.queue("c");
		this.engine.send(queue, count);
		bury(queue, "c");
		return queue;
	}

	/**
	 * Tick, receive everything and make dead letters of it.
	 */
	private void bury(String queue, String consumer) {
		long batch = open(queue, consumer);
		this.engine.value(Object.class, """
				select pgque.settle(?, null, array_agg(ev_id), array_agg(interval '0'), array_agg('bad'::text),
				                    array_agg(true))
				from pgque.get_batch_events(?)
				""", batch, batch);
	}

	private long open(String queue, String consumer) {
		this.engine.tick(queue);
		return this.engine.nextBatch(queue, consumer);
	}

	private long letterOf(String queue) {
		return this.engine.value(Long.class, "select dl_id from pgque.dlq_inspect(?, 1)", queue);
	}

	private long replay(long letter) {
		return this.engine.value(Long.class, "select pgque.dlq_replay(?)", letter);
	}

}
