package io.pgque.engine;

import java.time.OffsetDateTime;
import java.util.List;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for the way of a message from the nack to its next delivery.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class RetryTests {

	private static final String POSTPONE = "update pgque.retry_queue set ev_retry_after = now() + ?::interval"
			+ " where ev_queue = ?";

	private final Engine engine;

	RetryTests(TestDatabase database) {
		this.engine = new Engine(database);
	}

	@BeforeEach
	void nothingLeftByOthers() {
		this.engine.update("delete from pgque.retry_queue");
	}

	@Test
	void messageComesAgainAsItWas() {
		String queue = this.engine.queue("c");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		this.engine.tick(queue);
		Message first = this.engine.receive(queue, "c").get(0);
		this.engine.nack(first.batch(), first.id(), "0", null);
		this.engine.ack(first.batch());
		assertThat(this.engine.moveRetries()).isEqualTo(1);
		this.engine.tick(queue);
		Message second = this.engine.receive(queue, "c").get(0);
		assertThat(second)
			.isEqualTo(new Message(first.id(), second.batch(), "t", "x", 1, first.createdAt(), "a", "b", "c", "d"));
		assertThat(this.engine.rows("select * from pgque.retry_queue where ev_queue = ?", this.engine.idOf(queue)))
			.isEmpty();
	}

	@ParameterizedTest
	@CsvSource(nullValues = "NULL", value = { "NULL, 5", "0, 0", "2, 2" })
	void messageIsDeliveredOnceMoreThanItsRetries(String configured, int retries) {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", configured);
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		int deliveries = 0;
		for (List<Message> batch = this.engine.receive(queue, "c"); !batch.isEmpty(); batch = this.engine.receive(queue,
				"c")) {
			Message message = batch.get(0);
			assertThat(message.retryCount()).isEqualTo((deliveries == 0) ? null : (Integer) deliveries);
			deliveries++;
			this.engine.nack(message.batch(), 1, "0", "attempt " + deliveries);
			this.engine.ack(message.batch());
			this.engine.redeliver(queue);
		}
		assertThat(deliveries).isEqualTo(retries + 1);
		assertThat(this.engine.rows("select ev_id, ev_retry, dl_reason from pgque.dlq_inspect(?)", queue))
			.containsExactly(tuple(1L, (retries == 0) ? null : (Integer) retries, "attempt " + deliveries));
	}

	@Test
	void redeliveryIsForTheConsumerThatGaveItBack() {
		String queue = this.engine.queue("c", "other");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "other")).hasSize(2);
		nackAndAck(queue, "c", 2);
		this.engine.redeliver(queue);
		assertThat(this.engine.drain(queue, "other")).isEmpty();
		assertThat(this.engine.drain(queue, "c")).extracting(Message::id).containsExactly(2L);
	}

	@Test
	void consumersRetryTheSameEventIndependently() {
		String queue = this.engine.queue("c1", "c2");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		nackAndAck(queue, "c1", 1);
		nackAndAck(queue, "c2", 1);
		assertThat(this.engine.rows("select ev_id from pgque.retry_queue where ev_queue = ?", this.engine.idOf(queue)))
			.hasSize(2);
		this.engine.redeliver(queue);
		assertThat(this.engine.drain(queue, "c1")).hasSize(1);
		assertThat(this.engine.drain(queue, "c2")).hasSize(1);
	}

	@Test
	void onlyDueRetriesMove() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.nack(batch, 1, "0", null);
		this.engine.nack(batch, 2, "1 hour", null);
		this.engine.ack(batch);
		assertThat(this.engine.moveRetries()).isEqualTo(1);
		assertThat(this.engine.moveRetries()).isZero();
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::id).containsExactly(1L);
		this.engine.redeliver(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::id).containsExactly(2L);
	}

	@Test
	void allThatAreDueMoveAtOnce() {
		String first = this.engine.queue("c");
		String second = this.engine.queue("c");
		for (String queue : List.of(first, second)) {
			this.engine.send(queue, 500);
			this.engine.tick(queue);
			long batch = this.engine.nextBatch(queue, "c");
			this.engine.value(Integer.class, "select pgque.batch_retry(?, 0)", batch);
			this.engine.ack(batch);
		}
		assertThat(this.engine.moveRetries()).isEqualTo(1_000);
		assertThat(this.engine.values(String.class, "select queue_name from pgque.tick_now()")).contains(first, second);
		assertThat(this.engine.drain(first, "c")).hasSize(500);
		assertThat(this.engine.drain(second, "c")).hasSize(500);
	}

	@Test
	void nothingDueIsNothingMoved() {
		assertThat(this.engine.moveRetries()).isZero();
	}

	@Test
	void retryMaintenanceTickAndReceiveInOneTransactionGiveNothing() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		nackAndAck(queue, "c", 1);
		this.engine.inTransaction(() -> {
			assertThat(this.engine.moveRetries()).isEqualTo(1);
			this.engine.tick(queue);
			this.engine.tickEmpty(queue);
			assertThat(this.engine.drain(queue, "c")).isEmpty();
		});
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
	}

	@Test
	void redeliveryDoesNotJoinTheBatchItCameFrom() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		long batch = this.engine.nextBatch(queue, "c");
		this.engine.nack(batch, 1, "0", null);
		assertThat(this.engine.moveRetries()).as("the batch is open").isZero();
		this.engine.nack(batch, 1, "0", null);
		this.engine.ack(batch);
		assertThat(this.engine.moveRetries()).isEqualTo(1);
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::id).containsExactly(1L);
		assertThat(this.engine.moveRetries()).isZero();
	}

	@Test
	void retryOfADisabledQueueWaitsAndBlocksNobody() {
		String disabled = this.engine.queue("c");
		String queue = this.engine.queue("c");
		for (String each : List.of(disabled, queue)) {
			this.engine.send(each, 1);
			this.engine.tick(each);
			nackAndAck(each, "c", 1);
		}
		this.engine.update(POSTPONE, "-1 hour", this.engine.idOf(disabled));
		this.engine.update("update pgque.queue set queue_disable_insert = true where queue_name = ?", disabled);
		assertThat(this.engine.moveRetries()).isEqualTo(1);
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
		this.engine.update("update pgque.queue set queue_disable_insert = false where queue_name = ?", disabled);
		assertThat(this.engine.moveRetries()).isEqualTo(1);
		this.engine.tick(disabled);
		assertThat(this.engine.drain(disabled, "c")).hasSize(1);
	}

	@Test
	void retryThatCannotMoveIsSetAside() {
		String broken = this.engine.queue("c");
		String queue = this.engine.queue("c");
		for (String each : List.of(broken, queue)) {
			this.engine.send(each, 1);
			this.engine.tick(each);
			nackAndAck(each, "c", 1);
		}
		int id = this.engine.idOf(broken);
		this.engine.update(POSTPONE, "-1 hour", id);
		this.engine.execute("alter table pgque.event_" + id + " add constraint broken check (ev_owner is null)");
		assertThat(this.engine.warnings("select pgque.maint_retry_events()"))
			.anySatisfy((warning) -> assertThat(warning).contains("event 1", "set aside", "violates check constraint"));
		assertThat(this.engine.rows("select ev_id, ev_retry_after > now() + interval '9 minutes',"
				+ " ev_error like '%violates check constraint%' from pgque.retry_queue"))
			.containsExactly(tuple(1L, true, true));
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
		assertThat(this.engine.moveRetries()).as("not tried over and over").isZero();
		this.engine.execute("alter table pgque.event_" + id + " drop constraint broken");
		this.engine.redeliver(broken);
		assertThat(this.engine.drain(broken, "c")).hasSize(1);
	}

	@Test
	void movedRetriesAreNewToTheTicker() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		nackAndAck(queue, "c", 1);
		assertThat(this.engine.tick(queue)).isNull();
		this.engine.moveRetries();
		this.engine.age(queue, "5 seconds");
		assertThat(this.engine.value(Long.class, "select pgque.ticker(?)", queue)).isNotNull();
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
	}

	@Test
	void timeOfTheEventOutlivesManyRetries() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		OffsetDateTime created = this.engine.receive(queue, "c").get(0).createdAt();
		for (int i = 1; i <= 3; i++) {
			nackAndAck(queue, "c", 1);
			this.engine.redeliver(queue);
			Message message = this.engine.receive(queue, "c").get(0);
			assertThat(message.createdAt()).isEqualTo(created);
			assertThat(message.retryCount()).isEqualTo(i);
		}
	}

	private void nackAndAck(String queue, String consumer, long message) {
		long batch = this.engine.nextBatch(queue, consumer);
		this.engine.nack(batch, message, "0", null);
		this.engine.ack(batch);
	}

}
