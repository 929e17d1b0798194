package io.pgque.engine;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

import io.pgque.engine.Engine.Message;
import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for registering consumers and ending their registration.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class SubscriptionTests {

	private final Engine engine;

	SubscriptionTests(TestDatabase database) {
		this.engine = new Engine(database);
	}

	@Test
	void subscribeTellsNewFromExisting() {
		String queue = this.engine.queue();
		assertThat(call("select pgque.subscribe(?, 'c')", queue)).isEqualTo(1);
		assertThat(call("select pgque.subscribe(?, 'c')", queue)).isZero();
		assertThat(call("select pgque.register_consumer(?, 'c')", queue)).isZero();
		assertThat(call("select pgque.register_consumer(?, 'd')", queue)).isEqualTo(1);
		assertThat(call("select pgque.subscribe(queue => ?, consumer => 'e')", queue)).isEqualTo(1);
	}

	@Test
	void subscribeAgainLeavesThePositionAlone() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(this.engine.subscribe(queue, "c")).isZero();
		assertThat(this.engine.openBatch(queue, "c")).isEqualTo(batch);
		assertThat(this.engine.position(queue, "c")).isEqualTo(1);
	}

	@Test
	void consumerStartsAtTheNewestTick() {
		String queue = this.engine.queue();
		this.engine.send(queue, "before the tick");
		this.engine.tick(queue);
		this.engine.send(queue, "after the tick");
		this.engine.subscribe(queue, "c");
		this.engine.send(queue, "after subscribing");
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::payload)
			.containsExactly("after the tick", "after subscribing");
	}

	@Test
	void everyConsumerGetsEveryEvent() {
		String queue = this.engine.queue("c1", "c2");
		this.engine.send(queue, 3);
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c1")).hasSize(3);
		assertThat(this.engine.drain(queue, "c2")).hasSize(3);
	}

	@Test
	void oneNameServesManyQueues() {
		String first = this.engine.queue("shared");
		String second = this.engine.queue("shared");
		assertThat(call("select count(*) from pgque.consumer where co_name = 'shared'")).isEqualTo(1);
		this.engine.send(first, "x");
		this.engine.tick(first);
		assertThat(this.engine.nextBatch(first, "shared")).isNotNull();
		assertThat(this.engine.nextBatch(second, "shared")).isNull();
		assertThat(call("select pgque.unsubscribe(?, 'shared')", first)).isEqualTo(1);
		assertThat(call("select pgque.subscribe(?, 'shared')", second)).isZero();
	}

	@Test
	void emptyNameIsAName() {
		String queue = this.engine.queue();
		assertThat(this.engine.subscribe(queue, "")).isEqualTo(1);
		assertThat(this.engine.nextBatch(queue, "")).isNull();
	}

	@Test
	void consumerNeedsAName() {
		String queue = this.engine.queue();
		assertThat(this.engine.error("select pgque.subscribe(?, null)", queue).state()).isEqualTo("23502");
		assertThat(this.engine.error("select pgque.register_consumer(?, null)", queue).state()).isEqualTo("23502");
	}

	@Test
	void unknownQueue() {
		for (String function : new String[] { "subscribe(?, 'c')", "register_consumer(?, 'c')",
				"register_consumer_at(?, 'c', 1)", "register_consumer_at(?, 'c', null)" }) {
			assertThat(this.engine.error("select pgque." + function, "nowhere"))
				.isEqualTo(SqlError.raised("Event queue not created yet: nowhere"));
			SqlError error = this.engine.error("select pgque." + function, (String) null);
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).contains("Event queue not created yet");
		}
	}

	@Test
	void queueWithoutTicksHasNoStart() {
		String queue = this.engine.queue();
		this.engine.update("delete from pgque.tick where tick_queue = ?", this.engine.idOf(queue));
		assertThat(this.engine.error("select pgque.subscribe(?, 'c')", queue).message()).contains("tick");
	}

	@Test
	void namesOfSlotsAreReserved() {
		String queue = this.engine.queue();
		SqlError error = this.engine.error("select pgque.subscribe(?, 'reserved#0/2')", queue);
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(error.message()).contains("#");
		assertThat(call("select count(*) from pgque.consumer where co_name like 'reserved%'")).isZero();
		assertThat(call("select pgque.register_consumer(?, 'raw#0/2')", queue)).isEqualTo(1);
	}

	@Test
	void registerAtATick() {
		String queue = this.engine.queue();
		this.engine.send(queue, "first");
		long first = this.engine.tick(queue);
		this.engine.send(queue, "second");
		this.engine.tick(queue);
		assertThat(call("select pgque.register_consumer_at(?, 'early', 1)", queue)).isEqualTo(1);
		assertThat(call("select pgque.register_consumer_at(?, 'late', ?)", queue, first)).isEqualTo(1);
		assertThat(call("select pgque.register_consumer_at(?, 'new', null)", queue)).isEqualTo(1);
		assertThat(this.engine.drain(queue, "early")).extracting(Message::payload).containsExactly("first", "second");
		assertThat(this.engine.drain(queue, "late")).extracting(Message::payload).containsExactly("second");
		assertThat(this.engine.drain(queue, "new")).isEmpty();
	}

	@Test
	void registerAtMovesAndDropsTheOpenBatch() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
		this.engine.send(queue, "y");
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(call("select pgque.register_consumer_at(?, 'c', 1)", queue)).isZero();
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		assertThat(this.engine.ack(batch)).isZero();
		assertThat(this.engine.drain(queue, "c")).extracting(Message::payload).containsExactly("x", "y");
	}

	@Test
	void registerAtWithoutATickMovesNobody() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		assertThat(call("select pgque.register_consumer_at(?, 'c', null)", queue)).isZero();
		assertThat(this.engine.openBatch(queue, "c")).isEqualTo(batch);
		assertThat(this.engine.position(queue, "c")).isEqualTo(1);
	}

	@Test
	void registerAtNeedsAnExistingTick() {
		String queue = this.engine.queue();
		SqlError error = this.engine.error("select pgque.register_consumer_at(?, 'c', 99)", queue);
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(error.message()).contains("tick not found");
		assertThat(this.engine.rows("select * from pgque.get_consumer_info(?)", queue)).isEmpty();
	}

	@Test
	void unsubscribeCounts() {
		String queue = this.engine.queue("c", "d");
		assertThat(call("select pgque.unsubscribe(?, 'c')", queue)).isEqualTo(1);
		assertThat(call("select pgque.unsubscribe(?, 'c')", queue)).isZero();
		assertThat(call("select pgque.unregister_consumer(?, 'd')", queue)).isEqualTo(1);
		assertThat(call("select pgque.unregister_consumer(x_queue_name => ?, x_consumer_name => 'd')", queue)).isZero();
		assertThat(call("select pgque.unsubscribe('nowhere', 'c')")).isZero();
		assertThat(call("select pgque.unsubscribe(null, null)")).isZero();
	}

	@Test
	void unsubscribeDropsTheOpenBatchAndTheRetries() {
		String queue = this.engine.queue("c", "other");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.nack(batch, 1, "1 hour", null);
		this.engine.nack(this.engine.nextBatch(queue, "other"), 1, "1 hour", null);
		assertThat(call("select pgque.unsubscribe(?, 'c')", queue)).isEqualTo(1);
		assertThat(this.engine.ack(batch)).isZero();
		assertThat(call("select count(*) from pgque.retry_queue where ev_queue = ?", this.engine.idOf(queue)))
			.as("the other consumer's")
			.isEqualTo(1);
	}

	@Test
	void unsubscribeKeepsDeadLetters() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		this.engine.value(Object.class, "select pgque.settle(?, null, '{1}', '{0}', '{bad}', '{t}')",
				this.engine.nextBatch(queue, "c"));
		assertThat(call("select pgque.unsubscribe(?, 'c')", queue)).isEqualTo(1);
		call("select pgque.maint()");
		assertThat(this.engine.values(String.class, "select consumer_name from pgque.dead_letters(?, 10)", queue))
			.containsExactly("c");
	}

	@Test
	void unusedNamesGoWithMaintenance() {
		String queue = this.engine.queue("passing");
		call("select pgque.unsubscribe(?, 'passing')", queue);
		call("select pgque.maint()");
		assertThat(call("select count(*) from pgque.consumer where co_name = 'passing'")).isZero();
		assertThat(this.engine.subscribe(queue, "passing")).isEqualTo(1);
	}

	@Test
	void newRegistrationKnowsNothingOfTheOldOne() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "old");
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.nack(batch, 1, "0", null);
		this.engine.ack(batch);
		this.engine.moveRetries();
		call("select pgque.unsubscribe(?, 'c')", queue);
		this.engine.subscribe(queue, "c");
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		this.engine.send(queue, "new");
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::payload).containsExactly("new");
	}

	@Test
	void subscribeWithinTheTransactionThatSends() {
		String queue = this.engine.queue();
		this.engine.inTransaction(() -> {
			this.engine.send(queue, "x");
			this.engine.subscribe(queue, "c");
		});
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::payload).containsExactly("x");
	}

	private int call(String sql, Object... arguments) {
		return this.engine.value(Integer.class, sql, arguments);
	}

}
