package io.pgque.engine;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for giving messages of an open batch back.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class NackTests {

	private static final String NOBODY = "row(null, null, null, null, null, null, null, null, null, null)::pgque.message";

	private static final String DELAY = "select extract(epoch from ev_retry_after - now())::float8 from pgque.retry_queue"
			+ " where ev_queue = ?";

	private final Engine engine;

	NackTests(TestDatabase database) {
		this.engine = new Engine(database);
	}

	@Test
	void messageGoesToTheRetryQueue() {
		String queue = this.engine.queue("c");
		this.engine.value(Long.class, "select pgque.insert_event(?, 't', 'x', 'a', 'b', 'c', 'd')", queue);
		long batch = open(queue);
		assertThat(this.engine.nack(batch, 1, "10 seconds", "because")).isEqualTo(1);
		assertThat(this.engine.row("""
				select ev_queue, r.ev_id, r.ev_time = b.ev_time, r.ev_txid::text::bigint = b.ev_txid, ev_owner = sub_id,
				       r.ev_retry, r.ev_type, r.ev_data, r.ev_extra1, r.ev_extra2, r.ev_extra3, r.ev_extra4
				from pgque.retry_queue r, pgque.get_batch_events(?) b, pgque.subscription s
				where r.ev_queue = ? and s.sub_queue = r.ev_queue
				""", batch, this.engine.idOf(queue)))
			.isEqualTo(tuple(this.engine.idOf(queue), 1L, true, true, true, 1, "t", "x", "a", "b", "c", "d"));
		assertThat(this.engine.openBatch(queue, "c")).as("stays open").isEqualTo(batch);
		assertThat(this.engine.receive(queue, "c")).hasSize(1);
	}

	@Test
	void onlyTheIdIsTakenFromTheCaller() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "1");
		this.engine.send(queue, "true payload");
		long batch = open(queue);
		String forged = "select pgque.nack(?, row(1, 99, 'forged', 'forged', 77, now(), 'f', 'f', 'f', 'f')::pgque.message)";
		assertThat(this.engine.value(Integer.class, forged, batch)).isEqualTo(1);
		assertThat(this.engine.row(
				"select ev_type, ev_data, ev_retry, ev_extra1 from pgque.retry_queue where ev_queue = ?",
				this.engine.idOf(queue)))
			.isEqualTo(tuple("test", "true payload", 1, null));
		this.engine.ack(batch);
		this.engine.redeliver(queue);
		this.engine.value(Integer.class, forged, this.engine.nextBatch(queue, "c"));
		assertThat(this.engine.row("select ev_type, ev_data, ev_retry, ev_extra1 from pgque.dlq_inspect(?)", queue))
			.isEqualTo(tuple("test", "true payload", 1, null));
	}

	@ParameterizedTest
	@CsvSource({ "0.4 seconds, 0", "0.6 seconds, 1", "1.4 seconds, 1", "90 seconds, 90", "2 hours, 7200", "0, 0",
			"-10 seconds, -10", "1 day, 86400" })
	void delayIsRoundedToSeconds(String delay, double seconds) {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		long batch = open(queue);
		this.engine.inTransaction(() -> {
			this.engine.nack(batch, 1, delay, null);
			assertThat(this.engine.value(Double.class, DELAY, this.engine.idOf(queue))).isEqualTo(seconds);
		});
	}

	@Test
	void delayIsAMinuteUnlessGiven() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		long batch = open(queue);
		this.engine.inTransaction(() -> {
			this.engine.value(Integer.class, "select pgque.nack(?, m) from pgque.receive(?, 'c') m", batch, queue);
			assertThat(this.engine.value(Double.class, DELAY, this.engine.idOf(queue))).isEqualTo(60);
		});
	}

	@Test
	void unusableDelaysKeepTheirState() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		long batch = open(queue);
		String nack = "select pgque.nack(?, m, ?::interval) from pgque.receive(?, 'c') m";
		assertThat(this.engine.error(nack, batch, null, queue).state()).isEqualTo("23502");
		assertThat(this.engine.error(nack, batch, "1000000 years", queue).state()).isIn("22003", "22008");
		assertThat(this.engine.error(nack, batch, "100 years", queue).state()).isEqualTo("22003");
	}

	@Test
	void deadLetterNeedsNoDelay() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "0");
		this.engine.send(queue, "x");
		assertThat(this.engine.nack(open(queue), 1, null, null)).isEqualTo(1);
		assertThat(this.engine.rows("select ev_id from pgque.dlq_inspect(?)", queue)).hasSize(1);
	}

	@Test
	void repeatedNackChangesNothing() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		long batch = open(queue);
		String stored = "select ev_retry_after, ev_retry from pgque.retry_queue where ev_queue = ?";
		this.engine.nack(batch, 1, "10 seconds", null);
		var first = this.engine.row(stored, this.engine.idOf(queue));
		assertThat(this.engine.nack(batch, 1, "1 hour", null)).isEqualTo(1);
		assertThat(this.engine.row(stored, this.engine.idOf(queue))).isEqualTo(first);
	}

	@Test
	void unknownBatch() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		long batch = open(queue);
		this.engine.ack(batch);
		for (String id : new String[] { "987654321", "null", String.valueOf(batch) }) {
			SqlError error = this.engine
				.error("select pgque.nack(" + id + ", row(1, 1, '', '', 0, now(), '', '', '', '')::pgque.message)");
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).startsWith("batch not found");
		}
	}

	@Test
	void unknownMessage() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		long batch = open(queue);
		assertThat(this.engine.error("select pgque.nack(?, row(7, 1, '', '', 0, now(), '', '', '', '')::pgque.message)",
				batch))
			.isEqualTo(SqlError.raised("msg_id 7 not found in batch " + batch));
		assertThat(this.engine.error("select pgque.nack(?, " + NOBODY + ")", batch))
			.satisfies((error) -> assertThat(error.state()).isEqualTo("P0001"))
			.satisfies((error) -> assertThat(error.message()).matches("msg_id .* not found in batch " + batch));
		assertThat(this.engine.error("select pgque.nack(?, null)", batch).message())
			.matches("msg_id .* not found in batch " + batch);
	}

	@Test
	void eventRetryTellsNewFromRepeated() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		long batch = open(queue);
		this.engine.inTransaction(() -> {
			assertThat(this.engine.value(Integer.class, "select pgque.event_retry(?, 1, 30)", batch)).isEqualTo(1);
			assertThat(this.engine.value(Double.class, DELAY, this.engine.idOf(queue))).isEqualTo(30);
		});
		assertThat(this.engine.value(Integer.class, "select pgque.event_retry(?, 1, 60)", batch)).isZero();
		assertThat(this.engine.value(Integer.class,
				"select pgque.event_retry(?, 2, '2100-01-01 00:00:00+00'::timestamptz)", batch))
			.isEqualTo(1);
		assertThat(this.engine.rows("select ev_id, ev_retry from pgque.retry_queue where ev_queue = ?"
				+ " and ev_retry_after = '2100-01-01 00:00:00+00'", this.engine.idOf(queue)))
			.containsExactly(tuple(2L, 1));
	}

	@Test
	void eventRetryNeverGivesUp() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "0");
		this.engine.send(queue, 1);
		assertThat(this.engine.value(Integer.class, "select pgque.event_retry(?, 1, 30)", open(queue))).isEqualTo(1);
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).isEmpty();
	}

	@Test
	void eventRetryOfUnknownEvent() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		long batch = open(queue);
		assertThat(this.engine.error("select pgque.event_retry(?, 7, 30)", batch))
			.satisfies((error) -> assertThat(error.state()).isEqualTo("P0001"))
			.satisfies((error) -> assertThat(error.message()).startsWith("event not found"));
		assertThat(this.engine.error("select pgque.event_retry(987654321, 1, 30)").message())
			.containsAnyOf("batch not found", "event not found");
		assertThat(this.engine.error("select pgque.event_retry(null, 1, now())").message())
			.containsAnyOf("batch not found", "event not found");
	}

	@Test
	void batchRetryCountsWhatIsNew() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 5);
		long batch = open(queue);
		this.engine.nack(batch, 2, "1 hour", null);
		assertThat(this.engine.value(Integer.class, "select pgque.batch_retry(?, 30)", batch)).isEqualTo(4);
		assertThat(this.engine.value(Integer.class, "select pgque.batch_retry(?, 30)", batch)).isZero();
		assertThat(this.engine.values(Integer.class, "select ev_retry from pgque.retry_queue where ev_queue = ?",
				this.engine.idOf(queue)))
			.containsExactly(1, 1, 1, 1, 1);
		assertThat(this.engine.openBatch(queue, "c")).isEqualTo(batch);
		this.engine.ack(batch);
		this.engine.redeliver(queue);
		assertThat(this.engine.receive(queue, "c")).hasSize(5);
	}

	@Test
	void batchRetryOfAnEmptyBatch() {
		String queue = this.engine.queue("c");
		this.engine.tickEmpty(queue);
		assertThat(
				this.engine.value(Integer.class, "select pgque.batch_retry(?, 30)", this.engine.nextBatch(queue, "c")))
			.isZero();
	}

	@Test
	void batchRetryOfUnknownBatch() {
		assertThat(this.engine.error("select pgque.batch_retry(987654321, 30)"))
			.isEqualTo(SqlError.raised("batch_retry: batch 987654321 not found"));
		assertThat(this.engine.error("select pgque.batch_retry(null, 30)").message())
			.matches("batch_retry: batch .* not found");
	}

	@Test
	void rawRetryTakesAnyEvent() {
		String queue = this.engine.queue("c", "other");
		String raw = "select pgque.event_retry_raw(?, 'c', now(), ?::bigint, '2001-02-03 04:05:06+00', 3, 't', 'x',"
				+ " 'a', 'b', 'c', 'd')";
		assertThat(this.engine.value(Long.class, raw, queue, null)).isEqualTo(1);
		assertThat(this.engine.value(Long.class, raw, queue, 50)).isEqualTo(50);
		this.engine.redeliver(queue);
		assertThat(this.engine.receive(queue, "other")).isEmpty();
		assertThat(this.engine.receive(queue, "c")).hasSize(2).allSatisfy((message) -> {
			assertThat(message.retryCount()).isEqualTo(3);
			assertThat(message.createdAt()).isEqualTo("2001-02-03T04:05:06Z");
			assertThat(message.type() + message.payload() + message.extra1() + message.extra4()).isEqualTo("txad");
		});
	}

	@Test
	void rawRetryNeedsAConsumer() {
		String raw = "select pgque.event_retry_raw(?, ?, now(), 1, now(), 0, 't', 'x', null, null, null, null)";
		for (SqlError error : new SqlError[] { this.engine.error(raw, this.engine.queue("c"), "x"),
				this.engine.error(raw, "nowhere", "c"), this.engine.error(raw, null, null) }) {
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).contains("consumer not registered").doesNotContain("queue not found");
		}
	}

	private long open(String queue) {
		this.engine.tick(queue);
		return this.engine.nextBatch(queue, "c");
	}

}
