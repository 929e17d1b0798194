package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.Engine.Message;
import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for receiving and finishing batches of one tick.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class ReceiveTests {

	private final Engine engine;

	ReceiveTests(TestDatabase database) {
		this.engine = new Engine(database);
	}

	@Test
	void messageCarriesTheEvent() {
		String queue = this.engine.queue("c");
		long id = this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		this.engine.tick(queue);
		Message message = this.engine.receive(queue, "c").get(0);
		assertThat(message).isEqualTo(new Message(id, this.engine.openBatch(queue, "c"), "t", "x", null,
				message.createdAt(), "a", "b", "c", "d"));
		assertThat(message.createdAt()).isNotNull();
	}

	@Test
	void nothingComesBeforeTheTick() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		assertThat(this.engine.receive(queue, "c")).isEmpty();
		assertThat(this.engine.openBatch(queue, "c")).isNull();
	}

	@Test
	void sendTickAndReceiveInOneTransactionGivesNothing() {
		String queue = this.engine.queue("c");
		this.engine.inTransaction(() -> {
			this.engine.send(queue, "x");
			this.engine.tick(queue);
			this.engine.tickEmpty(queue);
			assertThat(this.engine.drain(queue, "c")).isEmpty();
			assertThat(this.engine.receiveBatch(queue, "c", 10)).isEmpty();
		});
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
	}

	@Test
	void tickReceiveAndAckInOneTransactionWork() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.inTransaction(() -> {
			assertThat(this.engine.tick(queue)).isNotNull();
			List<Message> messages = this.engine.receive(queue, "c");
			assertThat(messages).hasSize(1);
			assertThat(this.engine.ack(messages.get(0).batch())).isEqualTo(1);
		});
		assertThat(this.engine.drain(queue, "c")).isEmpty();
	}

	@Test
	void batchReadsTheSameUntilItIsAcked() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		List<Message> messages = this.engine.receive(queue, "c");
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		assertThat(messages).extracting(Message::id).containsExactly(1L, 2L, 3L);
		assertThat(this.engine.receive(queue, "c")).isEqualTo(messages);
		assertThat(this.engine.ack(messages.get(0).batch())).isEqualTo(1);
		assertThat(this.engine.receive(queue, "c")).extracting(Message::id).containsExactly(4L, 5L, 6L);
	}

	@Test
	void rolledBackReceiveLeavesTheConsumerWhereItWas() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		this.engine.rolledBack(() -> this.engine.ack(this.engine.receive(queue, "c").get(0).batch()));
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		assertThat(this.engine.receive(queue, "c")).hasSize(1);
	}

	@Test
	void limitCutsTheRowsAndAckFinishesTheWholeBatch() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 250);
		this.engine.tick(queue);
		assertThat(this.engine.messages("select * from pgque.receive(?, 'c')", queue)).hasSize(100);
		assertThat(this.engine.messages("select * from pgque.receive(?, 'c', 1)", queue)).extracting(Message::id)
			.containsExactly(1L);
		assertThat(this.engine.receive(queue, "c")).hasSize(250);
		List<Message> some = this.engine.messages("select * from pgque.receive(?, 'c', i_max_return => 10)", queue);
		assertThat(some).extracting(Message::id).containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L);
		this.engine.ack(some.get(0).batch());
		assertThat(this.engine.drain(queue, "c")).isEmpty();
	}

	@ParameterizedTest
	@ValueSource(ints = { 0, -1 })
	void limitMustBePositive(int limit) {
		SqlError error = this.engine.error("select * from pgque.receive(?, 'c', ?)", this.engine.queue("c"), limit);
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(error.message()).contains("max_return must be >= 1");
	}

	@Test
	void ticksComeOneByOneAndEmptyOnesAreFinishedAtOnce() {
		String queue = this.engine.queue("c");
		this.engine.tickEmpty(queue);
		this.engine.send(queue, "x");
		long second = this.engine.tick(queue);
		assertThat(this.engine.receive(queue, "c")).isEmpty();
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		assertThat(this.engine.position(queue, "c")).isEqualTo(second - 1);
		assertThat(this.engine.receive(queue, "c")).hasSize(1);
	}

	@Test
	void batchOfRolledBackEventsIsEmpty() {
		String queue = this.engine.queue("c");
		this.engine.rolledBack(() -> this.engine.send(queue, 3));
		this.engine.tickEmpty(queue);
		assertThat(this.engine.receive(queue, "c")).isEmpty();
		assertThat(this.engine.position(queue, "c")).isEqualTo(this.engine.newestTick(queue));
	}

	@Test
	void savepointsDecideWhatIsSent() {
		String queue = this.engine.queue("c");
		this.engine.inTransaction(() -> {
			this.engine.execute("savepoint one");
			this.engine.send(queue, "released");
			this.engine.execute("release savepoint one; savepoint two");
			this.engine.send(queue, "undone");
			this.engine.execute("rollback to savepoint two");
			this.engine.send(queue, "last");
		});
		this.engine.tick(queue);
		assertThat(this.engine.receive(queue, "c")).extracting(Message::payload).containsExactly("released", "last");
	}

	@ParameterizedTest
	@ValueSource(strings = { "pgque.receive(?, ?)", "pgque.receive(?, ?, 5)", "pgque.next_batch(?, ?)",
			"pgque.next_batch_info(?, ?)", "pgque.next_batch_custom(?, ?, null, 1, null)",
			"pgque.receive_batch(?, ?, 10, 1000)" })
	void consumerMustBeSubscribed(String call) {
		String queue = this.engine.queue("c");
		String sql = "select * from " + call;
		assertThat(this.engine.error(sql, queue, "x")).isEqualTo(notSubscriber(queue + "/x"));
		assertThat(this.engine.error(sql, "nowhere", "c")).isEqualTo(notSubscriber("nowhere/c"));
		assertThat(this.engine.error(sql, queue, null)).isEqualTo(notSubscriber(queue + "/NULL"));
		assertThat(this.engine.error(sql, null, null)).isEqualTo(notSubscriber("NULL/NULL"));
	}

	@Test
	void slotsOfPartitionedConsumersAreRefused() {
		String queue = this.engine.queue();
		this.engine.value(Integer.class, "select pgque.register_consumer(?, 'c#0/2')", queue);
		SqlError error = this.engine.error("select * from pgque.receive(?, 'c#0/2')", queue);
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(error.message()).contains("receive_partitioned");
	}

	@Test
	void finishedOrUnknownBatchIsNothingToAck() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(this.engine.warnings("select pgque.ack(?)", batch)).isEmpty();
		for (String function : new String[] { "ack", "finish_batch" }) {
			assertThat(this.engine.warnings("select pgque." + function + "(?)", batch)).singleElement()
				.asString()
				.contains("batch " + batch + " not found");
			assertThat(this.engine.value(Integer.class, "select pgque." + function + "(?)", batch)).isZero();
			assertThat(this.engine.value(Integer.class, "select pgque." + function + "(987654321)")).isZero();
			assertThat(this.engine.value(Integer.class, "select pgque." + function + "(null)")).isZero();
		}
	}

	@Test
	void finishMovesTheConsumerToTheEndOfTheBatch() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		long tick = this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		int id = this.engine.idOf(queue);
		String subscription = "select sub_last_tick, sub_batch, sub_next_tick from pgque.subscription where sub_queue = ?";
		assertThat(this.engine.row(subscription, id)).isEqualTo(tuple(1L, batch, tick));
		assertThat(this.engine.value(Integer.class, "select pgque.finish_batch(?)", batch)).isEqualTo(1);
		assertThat(this.engine.row(subscription, id)).isEqualTo(tuple(tick, null, null));
	}

	@Test
	void activityIsRemembered() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		int id = this.engine.idOf(queue);
		String forget = "update pgque.subscription set sub_active = now() - interval '1 hour' where sub_queue = ?";
		String recent = "select sub_active > now() - interval '10 minutes' from pgque.subscription where sub_queue = ?";
		this.engine.update(forget, id);
		assertThat(this.engine.value(Boolean.class, recent, id)).isFalse();
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(this.engine.value(Boolean.class, recent, id)).isTrue();
		this.engine.update(forget, id);
		this.engine.ack(batch);
		assertThat(this.engine.value(Boolean.class, recent, id)).isTrue();
	}

	private static SqlError notSubscriber(String names) {
		return SqlError.raised("Not subscriber to queue: " + names);
	}

}
