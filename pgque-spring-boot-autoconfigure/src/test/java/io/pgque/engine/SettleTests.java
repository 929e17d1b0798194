package io.pgque.engine;

import java.sql.SQLException;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import io.pgque.engine.Engine.Message;
import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for settling a batch, or its first part, in one statement.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class SettleTests {

	private static final String SETTLE = "select settled, retried, dead_ids::text from pgque.settle(?, ?, ?::bigint[],"
			+ " ?::interval[], ?::text[], ?::boolean[])";

	private final TestDatabase database;

	private final Engine engine;

	SettleTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@BeforeEach
	void nothingLeftByOthers() {
		this.engine.update("delete from pgque.retry_queue");
	}

	@Test
	void wholeBatchWithoutNacks() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 3);
		assertThat(settle(batch, null)).isEqualTo(tuple(true, 0, "{}"));
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		assertThat(this.engine.position(queue, "c")).isEqualTo(2);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).isEmpty();
	}

	@Test
	void emptyArraysAreNoNacks() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.row(SETTLE, open(queue, 3), null, "{}", "{}", "{}", "{}"))
			.isEqualTo(tuple(true, 0, "{}"));
		assertThat(this.engine.row(SETTLE, open(queue, 3), null, null, null, null, null))
			.isEqualTo(tuple(true, 0, "{}"));
	}

	@Test
	void nacksComeAgainAndTheRestIsDone() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 5);
		assertThat(this.engine.row(SETTLE, batch, null, "{4,2}", "{0,0}", "{b,a}", "{f,f}"))
			.isEqualTo(tuple(true, 2, "{}"));
		assertThat(this.engine.moveRetries()).isEqualTo(2);
		this.engine.tick(queue);
		assertThat(this.engine.receiveBatch(queue, "c", 10))
			.extracting(Message::id, Message::payload, Message::retryCount)
			.containsExactly(tuple(2L, "payload 2", 1), tuple(4L, "payload 4", 1));
	}

	@ParameterizedTest
	@CsvSource({ "1500 milliseconds, 1.5", "20 milliseconds, 0.02", "0, 0", "2 days, 172800" })
	void delayCountsFromTheCallToTheMillisecond(String delay, double seconds) {
		String queue = this.engine.queue("c");
		long batch = open(queue, 1);
		var times = this.engine
			.row("""
					with before as materialized (select clock_timestamp() as t),
					settled as materialized (
					    select s.settled, clock_timestamp() as t from before b
					    cross join pgque.settle(?, null, '{1}', array[?::interval], '{x}', '{f}') s
					    where b.t is not null
					)
					select extract(epoch from b.t)::float8, extract(epoch from s.t)::float8 from before b, settled s where s.settled
					""",
					batch, delay)
			.toList();
		assertThat(this.engine.value(Double.class,
				"select extract(epoch from ev_retry_after)::float8 from pgque.retry_queue where ev_queue = ?",
				this.engine.idOf(queue)))
			.isBetween((double) times.get(0) + seconds, (double) times.get(1) + seconds);
	}

	@Test
	void eachNackHasItsOwnDelayAndReason() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "1");
		long batch = open(queue, 3);
		this.engine.row(SETTLE, batch, null, "{3,1,2}", "{3 hours,1 hour,2 hours}", "{three,one,two}", "{f,f,t}");
		assertThat(this.engine.rows("select ev_id, round(extract(epoch from ev_retry_after - now()) / 3600)::int4"
				+ " from pgque.retry_queue where ev_queue = ? order by ev_id", this.engine.idOf(queue)))
			.containsExactly(tuple(1L, 1), tuple(3L, 3));
		assertThat(this.engine.rows("select ev_id, dl_reason from pgque.dlq_inspect(?)", queue))
			.containsExactly(tuple(2L, "two"));
	}

	@Test
	void messageMayBeGivenUpAtOnce() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 4);
		assertThat(this.engine.row(SETTLE, batch, null, "{3,1,2}", "{0,0,0}", "{x,NULL,y}", "{t,t,f}"))
			.isEqualTo(tuple(true, 1, "{1,3}"));
		assertThat(this.engine
			.rows("select ev_id, dl_reason, ev_retry, ev_data from pgque.dlq_inspect(?) order by ev_id", queue))
			.containsExactly(tuple(1L, "max retries exceeded", null, "payload 1"), tuple(3L, "x", null, "payload 3"));
	}

	@Test
	void messageIsGivenUpAfterItsRetries() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "max_retries", "1");
		long batch = open(queue, 2);
		assertThat(this.engine.row(SETTLE, batch, null, "{1}", "{0}", "{first}", "{f}"))
			.isEqualTo(tuple(true, 1, "{}"));
		this.engine.redeliver(queue);
		batch = this.engine.receiveBatch(queue, "c", 10).get(0).batch();
		assertThat(this.engine.row(SETTLE, batch, null, "{1}", "{0}", "{second}", "{f}"))
			.isEqualTo(tuple(true, 0, "{1}"));
		assertThat(this.engine.rows("select ev_id, ev_retry, dl_reason from pgque.dlq_inspect(?)", queue))
			.containsExactly(tuple(1L, 1, "second"));
	}

	@Test
	void staleIdSettlesNothing() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 2);
		settle(batch, null);
		long next = open(queue, 2);
		for (Long stale : new Long[] { batch, 987654321L, null }) {
			assertThat(this.engine.row(SETTLE, stale, null, "{1,2}", "{0,0}", "{x,y}", "{f,t}"))
				.isEqualTo(tuple(false, 0, "{}"));
			assertThat(settle(stale, 1L)).isEqualTo(tuple(false, 0, "{}"));
		}
		assertThat(this.engine.openBatch(queue, "c")).isEqualTo(next);
		assertThat(this.engine.rows("select * from pgque.retry_queue where ev_queue = ?", this.engine.idOf(queue)))
			.isEmpty();
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).isEmpty();
	}

	@Test
	void restOfAPrefixComesUnderANewIdAndIsNotCountedAsFailed() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 5);
		assertThat(settle(batch, 2L)).isEqualTo(tuple(true, 0, "{}"));
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		List<Message> rest = this.engine.receiveBatch(queue, "c", 10);
		assertThat(rest).extracting(Message::id, Message::retryCount)
			.containsExactly(tuple(3L, null), tuple(4L, null), tuple(5L, null));
		assertThat(rest).extracting(Message::batch)
			.containsOnly(this.engine.openBatch(queue, "c"))
			.doesNotContain(batch);
		assertThat(this.engine.position(queue, "c")).as("not done with the tick").isEqualTo(1);
		assertThat(settle(batch, null)).isEqualTo(tuple(false, 0, "{}"));
		assertThat(settle(rest.get(0).batch(), null)).isEqualTo(tuple(true, 0, "{}"));
		assertThat(this.engine.position(queue, "c")).isEqualTo(2);
	}

	@Test
	void prefixAfterPrefix() {
		String queue = this.engine.queue("c");
		settle(open(queue, 6), 1L);
		settle(this.engine.receiveBatch(queue, "c", 10).get(0).batch(), 4L);
		List<Message> rest = this.engine.receiveBatch(queue, "c", 10);
		assertThat(rest).extracting(Message::id).containsExactly(5L, 6L);
		settle(rest.get(0).batch(), 2L);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).as("never back")
			.extracting(Message::id)
			.containsExactly(5L, 6L);
	}

	@Test
	void prefixUpToTheEndLeavesNothing() {
		String queue = this.engine.queue("c");
		settle(open(queue, 3), 3L);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).isEmpty();
		assertThat(this.engine.openBatch(queue, "c")).isNull();
		assertThat(this.engine.position(queue, "c")).isEqualTo(2);
	}

	@Test
	void prefixBeforeTheFirstLeavesAll() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 3);
		settle(batch, 0L);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).hasSize(3)
			.extracting(Message::batch)
			.doesNotContain(batch);
	}

	@Test
	void restOfAPrefixIsReadByTheOtherFunctionsToo() {
		String queue = this.engine.queue("c");
		settle(open(queue, 5), 3L);
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		List<Message> rest = this.engine.receive(queue, "c");
		assertThat(rest).extracting(Message::id).containsExactly(4L, 5L);
		long batch = rest.get(0).batch();
		assertThat(this.engine.values(Long.class, "select ev_id from pgque.get_batch_events(?)", batch))
			.containsExactly(4L, 5L);
		assertThat(this.engine.messages("select * from pgque.receive_page(?, 0, 10, 1000)", batch)).hasSize(2);
		assertThat(this.engine.error("select pgque.nack(?, row(3, 1, '', '', 0, now(), '', '', '', '')::pgque.message)",
				batch))
			.isEqualTo(SqlError.raised("msg_id 3 not found in batch " + batch));
		this.engine.ack(batch);
		assertThat(this.engine.receive(queue, "c")).extracting(Message::id).containsExactly(6L, 7L);
	}

	@Test
	void nacksOfAPrefix() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 5);
		assertThat(this.engine.row(SETTLE, batch, 3L, "{2,3}", "{0,0}", "{x,bad}", "{f,t}"))
			.isEqualTo(tuple(true, 1, "{3}"));
		assertThat(this.engine.moveRetries()).isEqualTo(1);
		this.engine.tick(queue);
		List<Message> rest = this.engine.receiveBatch(queue, "c", 10);
		assertThat(rest).extracting(Message::id).containsExactly(4L, 5L);
		settle(rest.get(0).batch(), null);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).extracting(Message::id, Message::retryCount)
			.containsExactly(tuple(2L, 1));
	}

	@Test
	void nackBehindThePrefixRefusesEverything() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 5);
		assertThat(this.engine.error(SETTLE, batch, 3L, "{2,4}", "{0,0}", "{x,y}", "{t,f}")).satisfies((error) -> {
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).contains("behind the settled part", "3");
		});
		assertUntouched(queue, batch, 5);
	}

	@ParameterizedTest
	@CsvSource(quoteCharacter = '"', value = { "\"{2,99}\"", "\"{NULL,2}\"", "\"{99,98}\"" })
	void nackOutsideTheBatchRefusesEverything(String ids) {
		String queue = this.engine.queue("c");
		long batch = open(queue, 5);
		assertThat(this.engine.error(SETTLE, batch, null, ids, "{0,0}", "{x,y}", "{t,t}")).satisfies((error) -> {
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).contains("name no event of batch " + batch);
		});
		assertUntouched(queue, batch, 5);
	}

	@Test
	void nackOfAnEventSettledBeforeRefusesEverything() {
		String queue = this.engine.queue("c");
		settle(open(queue, 5), 2L);
		long batch = this.engine.receiveBatch(queue, "c", 10).get(0).batch();
		assertThat(this.engine.error(SETTLE, batch, null, "{2,3}", "{0,0}", "{x,y}", "{f,f}").message())
			.contains("name no event of batch " + batch);
		assertUntouched(queue, batch, 3);
	}

	@ParameterizedTest
	@CsvSource(quoteCharacter = '"', nullValues = "NULL",
			value = { "{1}, {}, {x}, {f}", "{1}, {0}, {}, {f}", "{1}, {0}, {x}, {}", "{1}, NULL, {x}, {f}",
					"\"{1,2}\", {0}, \"{x,y}\", \"{f,f}\"", "{1}, \"{0,0}\", {x}, {f}", "{}, {0}, {x}, {f}",
					"NULL, {0}, NULL, NULL" })
	void arraysOfDifferentLengthsAreRefused(String ids, String delays, String reasons, String dead) {
		String queue = this.engine.queue("c");
		long batch = open(queue, 2);
		assertThat(this.engine.error(SETTLE, batch, null, ids, delays, reasons, dead)).satisfies((error) -> {
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).contains("differ in length");
		});
		assertUntouched(queue, batch, 2);
	}

	@Test
	void delayMustBeGiven() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 2);
		assertThat(this.engine.error(SETTLE, batch, null, "{1,2}", "{0,NULL}", "{x,y}", "{f,f}").state())
			.isEqualTo("23502");
		assertUntouched(queue, batch, 2);
	}

	@Test
	void oneEventTwiceIsOneNack() {
		String queue = this.engine.queue("c");
		assertThat(this.engine.row(SETTLE, open(queue, 2), null, "{1,1}", "{0,0}", "{x,y}", "{f,f}"))
			.isEqualTo(tuple(true, 1, "{}"));
	}

	@Test
	void nackOfTheOldFunctionStandsWhenSettled() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 2);
		this.engine.nack(batch, 1, "1 hour", null);
		assertThat(this.engine.row(SETTLE, batch, null, "{1,2}", "{0,0}", "{x,y}", "{f,f}"))
			.isEqualTo(tuple(true, 1, "{}"));
		assertThat(this.engine.moveRetries()).isEqualTo(1);
	}

	@Test
	void manyNacksInOneStatement() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 1_000);
		String ids = LongStream.rangeClosed(1, 300)
			.mapToObj((n) -> String.valueOf(3 * n))
			.collect(Collectors.joining(",", "{", "}"));
		String delays = "0,".repeat(299) + "0";
		assertThat(this.engine.row(SETTLE, batch, null, ids, "{" + delays + "}", "{" + delays + "}",
				"{" + delays.replace('0', 'f') + "}"))
			.isEqualTo(tuple(true, 300, "{}"));
		assertThat(this.engine.moveRetries()).isEqualTo(300);
		this.engine.tick(queue);
		assertThat(this.engine.receiveBatch(queue, "c", 1_000)).extracting(Message::id)
			.isEqualTo(LongStream.rangeClosed(1, 300).mapToObj((n) -> 3 * n).toList());
	}

	@Test
	void lowerIdsThatCommittedLateAreNotTakenForSettled() throws SQLException {
		String queue = this.engine.queue("c");
		try (Session sender = Session.transactional(this.database)) {
			assertThat(sender.send(queue, "late")).isEqualTo(1);
			long batch = open(queue, 4);
			settle(batch, 3L);
			sender.connection().commit();
		}
		this.engine.tick(queue);
		List<Message> rest = this.engine.receiveBatch(queue, "c", 10);
		assertThat(rest).extracting(Message::id).containsExactly(4L, 5L);
		settle(rest.get(0).batch(), null);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).extracting(Message::payload).containsExactly("late");
	}

	@Test
	void prefixEndsWithTheConsumersMove() {
		String queue = this.engine.queue("c");
		settle(open(queue, 5), 3L);
		this.engine.value(Integer.class, "select pgque.register_consumer_at(?, 'c', 1)", queue);
		assertThat(this.engine.receiveBatch(queue, "c", 10)).extracting(Message::id)
			.containsExactly(1L, 2L, 3L, 4L, 5L);
	}

	@Test
	void rolledBackSettleChangesNothing() {
		String queue = this.engine.queue("c");
		long batch = open(queue, 3);
		this.engine.rolledBack(() -> this.engine.row(SETTLE, batch, 2L, "{1,2}", "{0,0}", "{x,y}", "{f,t}"));
		assertUntouched(queue, batch, 3);
	}

	/**
	 * Send, tick and receive a batch.
	 */
	private long open(String queue, int count) {
		this.engine.send(queue, count);
		this.engine.tick(queue);
		return this.engine.receiveBatch(queue, "c", 10_000).get(0).batch();
	}

	private Tuple settle(Long batch, Long upTo) {
		return this.engine.row(SETTLE, batch, upTo, null, null, null, null);
	}

	private void assertUntouched(String queue, long batch, int count) {
		assertThat(this.engine.receiveBatch(queue, "c", 10_000)).hasSize(count)
			.extracting(Message::batch)
			.containsOnly(batch);
		assertThat(this.engine.rows("select * from pgque.retry_queue where ev_queue = ?", this.engine.idOf(queue)))
			.isEmpty();
		assertThat(this.engine.rows("select * from pgque.dlq_inspect(?)", queue)).isEmpty();
	}

}
