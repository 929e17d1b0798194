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
 * Replay: moving a consumer to a tick or a time.
 */
@PgqueDatabase
class SeekTests {

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	private long first;

	/**
	 * Ticks of one, two and three hours ago, an event before each.
	 */
	@BeforeEach
	void sendForHours() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.first = this.calls.newestTick(this.queue);
		this.calls.integer("select pgque.subscribe(?, 'c')", this.queue);
		this.calls.sendTicks(this.queue, "3 hours ago", "2 hours ago", "1 hour ago");
		this.calls.update(
				"update pgque.tick set tick_time = now() - (4 - tick_id + ?) * interval '1 hour'"
						+ " where tick_queue = (select queue_id from pgque.queue where queue_name = ?)",
				this.first, this.queue);
	}

	@Test
	void theTickBeforeATimeIsFound() {
		assertThat(tickBefore("0")).isEqualTo(this.first + 3);
		assertThat(tickBefore("59 minutes")).isEqualTo(this.first + 3);
		assertThat(tickBefore("61 minutes")).isEqualTo(this.first + 2);
		assertThat(tickBefore("3.5 hours")).isEqualTo(this.first);
		assertThat(tickBefore("1 year")).as("the oldest there is").isEqualTo(this.first);
		assertThat(tickBefore("-1 hour")).isEqualTo(this.first + 3);
	}

	@Test
	void aConsumerIsMovedBackToATime() {
		assertThat(drain("c")).hasSize(3);
		assertThat(seek("c", "150 minutes")).isEqualTo(this.first + 1);
		assertThat(drain("c")).containsExactly("2 hours ago", "1 hour ago");
		assertThat(seek("c", "1 year")).isEqualTo(this.first);
		assertThat(drain("c")).containsExactly("3 hours ago", "2 hours ago", "1 hour ago");
	}

	@Test
	void aConsumerIsMovedForward() {
		assertThat(seek("c", "90 minutes")).isEqualTo(this.first + 2);
		assertThat(drain("c")).containsExactly("1 hour ago");
	}

	@Test
	void aNewConsumerStartsThere() {
		seek("new", "150 minutes");
		assertThat(drain("new")).containsExactly("2 hours ago", "1 hour ago");
	}

	@Test
	void whoSubscribesFromATimeMovesNobodyElse() {
		String from = "select pgque.subscribe_from(?, ?, now() - ?::interval)";
		assertThat(this.calls.integer(from, this.queue, "new", "150 minutes")).isOne();
		assertThat(drain("new")).containsExactly("2 hours ago", "1 hour ago");
		assertThat(this.calls.integer(from, this.queue, "new", "1 year")).isZero();
		assertThat(drain("new")).isEmpty();
		assertThat(this.calls.error(from, "none", "new", "1 hour")).satisfies(raised("Event queue not created yet"));
	}

	@Test
	void aConsumerIsMovedToATick() {
		drain("c");
		assertThat(this.calls.integer("select pgque.register_consumer_at(?, 'c', ?)", this.queue, this.first + 2))
			.isZero();
		assertThat(drain("c")).containsExactly("1 hour ago");
		assertThat(this.calls.error("select pgque.register_consumer_at(?, 'c', 777)", this.queue))
			.satisfies(raised("tick not found: 777"));
	}

	@Test
	void theOpenBatchIsDropped() {
		Message message = receive("c").get(0);
		seek("c", "150 minutes");
		assertThat(this.calls.integer("select pgque.ack(?)", message.batch())).isZero();
		assertThat(this.calls.subscription(this.queue, "c")).isEqualTo(tuple("normal", this.first + 1, null, null));
		List<Message> batch = receive("c");
		this.calls.row("select * from pgque.settle(?, ?, '{}', '{}', '{}', '{}')", batch.get(0).batch(),
				batch.get(0).id());
		seek("c", "1 year");
		assertThat(drain("c")).as("nor does a settled part count").hasSize(3);
	}

	@Test
	void aRedeliveryComesAgainWithItsEventAndIsCountedOnce() {
		Message message = receive("c").get(0);
		this.calls.nack(message.batch(), message.id());
		this.calls.integer("select pgque.ack(?)", message.batch());
		this.calls.redeliver(this.queue);
		drain("c");
		seek("c", "1 year");
		List<Message> again = receive("c");
		assertThat(again).extracting(Message::payload)
			.containsExactly("3 hours ago", "3 hours ago", "2 hours ago", "1 hour ago");
		this.calls.nack(again.get(0).batch(), message.id());
		assertThat(this.calls.values(Integer.class,
				"select ev_retry from pgque.retry_queue where ev_queue ="
						+ " (select queue_id from pgque.queue where queue_name = ?)",
				this.queue))
			.as("the attempts go on from the redelivery")
			.containsExactly(2);
	}

	@Test
	void aGroupIsMovedAsAWhole() {
		this.calls.integer("select pgque.register_subconsumer(?, 'group', 'a')", this.queue);
		seek("group", "150 minutes");
		assertThat(this.calls.messages("select * from pgque.receive_coop(?, 'group', 'a')", this.queue))
			.extracting(Message::payload)
			.containsExactly("2 hours ago");
		assertThat(this.calls.error("select pgque.seek(?, 'group.a', now())", this.queue))
			.satisfies(raised("cannot be moved alone"));
		this.calls.integer("select pgque.subscribe_slots(?, 'p', 2)", this.queue);
		assertThat(this.calls.error("select pgque.seek(?, 'p#0/2', now())", this.queue))
			.satisfies(raised("cannot be moved alone"));
	}

	@Test
	void aQueueAndATimeAreNeeded() {
		assertThat(this.calls.error("select pgque.seek('nowhere', 'c', now())"))
			.satisfies(raised("queue not found: nowhere"));
		assertThat(this.calls.error("select pgque.seek(?, 'c', null)", this.queue))
			.satisfies(raised("a time is needed"));
		assertThat(this.calls.error("select pgque.seek(?, null, now())", this.queue).state()).isEqualTo("23502");
		SqlCalls reader = new SqlCalls(this.database.createLogin("pgque_reader").dataSource());
		reader.id("select pgque.seek(?, 'c', now())", this.queue);
		reader.id("select pgque.tick_before(?, now())", this.queue);
		SqlCalls writer = new SqlCalls(this.database.createLogin("pgque_writer").dataSource());
		assertThat(writer.error("select pgque.seek(?, 'c', now())", this.queue).state()).isEqualTo("42501");
	}

	private long tickBefore(String age) {
		return this.calls.id("select pgque.tick_before(?, now() - ?::interval)", this.queue, age);
	}

	private long seek(String consumer, String age) {
		return this.calls.id("select pgque.seek(?, ?, now() - ?::interval)", this.queue, consumer, age);
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

}
