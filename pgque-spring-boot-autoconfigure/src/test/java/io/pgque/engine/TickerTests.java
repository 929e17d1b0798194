package io.pgque.engine;

import java.util.List;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.Engine.Message;
import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for the tickers with thresholds.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class TickerTests {

	private final TestDatabase database;

	private final Engine engine;

	TickerTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@BeforeEach
	void queuesOfOthersRest() {
		this.engine.update("update pgque.queue set queue_ticker_paused = true");
		this.engine.value(Integer.class, "select pgque.set_tick_period_ms(100)");
	}

	@Test
	void oneEventAfterCreationTicksAtOnce() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, "x");
		assertThat(tickAll()).isEqualTo(1);
		assertThat(this.engine.receive(queue, "c")).hasSize(1);
	}

	@ParameterizedTest
	@CsvSource({ "0, false", "2.9, false", "3, true", "100, true" })
	void fewEventsWaitForTheLag(double lag, boolean due) {
		String queue = queueWithTwoTicks();
		this.engine.send(queue, 10);
		assertThat(tickerAfter(queue, lag, 0)).isEqualTo(due ? 3L : null);
		assertThat(ticker(queue)).isNull();
	}

	@Test
	void enoughEventsTickAtOnce() {
		String queue = queueWithTwoTicks();
		this.engine.configure(queue, "ticker_max_count", "5");
		this.engine.send(queue, 4);
		assertThat(ticker(queue)).isNull();
		this.engine.send(queue, 1);
		assertThat(ticker(queue)).isEqualTo(3);
	}

	@Test
	void lagIsConfigured() {
		String queue = queueWithTwoTicks();
		this.engine.configure(queue, "ticker_max_lag", "1 hour");
		this.engine.send(queue, 1);
		assertThat(tickerAfter(queue, 3599, 1)).isNull();
		assertThat(tickerAfter(queue, 3600, 1)).isEqualTo(3);
	}

	/**
	 * Without events, with ticker_max_lag 3 s and ticker_idle_period 1 min: half the lag
	 * must be over, and twice the distance of the last two ticks or the idle period.
	 */
	@ParameterizedTest
	@CsvSource({ "1.4, 0.1, false", "1.5, 0.1, true", "1.5, 0.8, false", "2, 1, true", "10, 5.1, false", "10, 5, true",
			"59.9, 30, false", "60, 60, true", "60, 1000, true" })
	void idleTicksBackOff(double lag, double gap, boolean due) {
		assertThat(tickerAfter(queueWithTwoTicks(), lag, gap)).isEqualTo(due ? 3L : null);
	}

	@Test
	void tickRemembersTimeSequenceAndSnapshot() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 7);
		this.engine.inTransaction(() -> {
			assertThat(ticker(queue)).isEqualTo(2);
			assertThat(this.engine.row("""
					select tick_time = now(), tick_event_seq, pg_visible_in_snapshot(e.ev_txid, t.tick_snapshot),
					       pg_visible_in_snapshot(pg_current_xact_id(), t.tick_snapshot)
					from pgque.tick t, pgque.event_%d e
					where t.tick_queue = %1$d and t.tick_id = 2 and e.ev_id = 7
					""".formatted(this.engine.idOf(queue)))).isEqualTo(tuple(true, 7L, true, false));
		});
	}

	@Test
	void commitThatCameLateIsCoveredThoughTheSequenceStands() throws Exception {
		String queue = queueWithTwoTicks();
		try (Session sender = Session.transactional(this.database)) {
			sender.send(queue, "late");
			this.engine.send(queue, "early");
			assertThat(this.engine.tick(queue)).isEqualTo(3);
			assertThat(this.engine.drain(queue, "c")).extracting(Message::payload)
				.contains("early")
				.doesNotContain("late");
			sender.connection().commit();
		}
		assertThat(ticker(queue)).isNull();
		this.engine.age(queue, "3 seconds");
		assertThat(ticker(queue)).isEqualTo(4);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::payload).containsExactly("late");
	}

	@Test
	void tickerCountsTheQueuesItTicked() {
		String first = this.engine.queue();
		String second = this.engine.queue();
		this.engine.configure(this.engine.queue(), "ticker_paused", "true");
		this.engine.configure(this.engine.queue(), "external_ticker", "true");
		queueWithTwoTicks();
		assertThat(tickAll()).isEqualTo(2);
		assertThat(this.engine.newestTick(first)).isEqualTo(2);
		assertThat(this.engine.newestTick(second)).isEqualTo(2);
	}

	@Test
	void tickerThatIsNotDueWritesNothing() {
		queueWithTwoTicks();
		this.engine.inTransaction(() -> {
			assertThat(tickAll()).isZero();
			assertThat(this.engine.value(String.class, "select pg_current_xact_id_if_assigned()::text")).isNull();
		});
	}

	@Test
	void oneFailingQueueStopsNoOther() {
		String broken = this.engine.queue();
		String fine = this.engine.queue();
		fromTheFuture(broken);
		assertThat(this.engine.warnings("select pgque.ticker()")).singleElement()
			.asString()
			.contains("Invalid PgQ state", broken);
		assertThat(this.engine.newestTick(fine)).isEqualTo(2);
		assertThat(this.engine.newestTick(broken)).isEqualTo(1);
	}

	@Test
	void stateOfAnotherClusterIsRefused() {
		String queue = this.engine.queue();
		fromTheFuture(queue);
		SqlError error = this.engine.error("select pgque.ticker(?)", queue);
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(error.message()).contains("Invalid PgQ state");
	}

	@Test
	void queueMustBeTickedFromHere() {
		assertThat(this.engine.error("select pgque.ticker('nowhere')"))
			.isEqualTo(SqlError.raised("no such queue: nowhere"));
		assertThat(this.engine.error("select pgque.ticker(null::text)").message()).contains("no such queue");
		String queue = this.engine.queue();
		this.engine.configure(queue, "ticker_paused", "true");
		assertThat(this.engine.error("select pgque.ticker(?)", queue)).satisfies(raisedWith("paused"));
		this.engine.configure(queue, "ticker_paused", "false");
		this.engine.configure(queue, "external_ticker", "true");
		assertThat(this.engine.error("select pgque.ticker(?)", queue)).satisfies(raisedWith("external"));
	}

	@Test
	void oldSnapshotMayNotTick() {
		String queue = this.engine.queue();
		for (String call : new String[] { "pgque.ticker()", "pgque.ticker('" + queue + "')", "pgque.tick_now()",
				"pgque.tick_now('{" + queue + "}')" }) {
			this.engine.inTransaction(() -> {
				this.engine.execute("set transaction isolation level repeatable read");
				assertThat(this.engine.error("select " + call).state()).isEqualTo("25000");
			});
		}
	}

	@Test
	void externalTickIsRecordedAsGiven() {
		String queue = externalQueue();
		assertThat(this.engine.value(Long.class, "select pgque.ticker(?, 100, '2001-02-03 04:05:06+00', 5000)", queue))
			.isEqualTo(100);
		assertThat(
				this.engine.row("select tick_id, tick_time = '2001-02-03 04:05:06+00', tick_event_seq from pgque.tick"
						+ " where tick_queue = ? and tick_id > 1", this.engine.idOf(queue)))
			.isEqualTo(tuple(100L, true, 5000L));
		assertThat(this.engine.send(queue, "x")).as("the sequence was moved").isEqualTo(5001);
		assertThat(this.engine.value(Long.class, "select pgque.ticker(?, 101, now(), 5000)", queue)).isEqualTo(101);
		assertThat(this.engine.send(queue, "x")).as("and not moved back").isEqualTo(5002);
		this.engine.configure(queue, "external_ticker", "false");
		assertThat(this.engine.tick(queue)).isEqualTo(102);
	}

	@Test
	void externalTickDeliversEvents() {
		String queue = externalQueue();
		this.engine.subscribe(queue, "c");
		this.engine.send(queue, 2);
		this.engine.value(Long.class, "select pgque.ticker(?, 10, now(), 2)", queue);
		assertThat(this.engine.receive(queue, "c")).hasSize(2);
	}

	@Test
	void externalTickMustBeNewer() {
		String queue = externalQueue();
		this.engine.value(Long.class, "select pgque.ticker(?, 10, now(), 50)", queue);
		String tick = "select pgque.ticker(?, ?, now(), ?)";
		assertThat(this.engine.error(tick, queue, 10, 50)).satisfies(raisedWith("tick_id"));
		assertThat(this.engine.error(tick, queue, 9, 50)).satisfies(raisedWith("tick_id"));
		assertThat(this.engine.error(tick, queue, 11, 49)).satisfies(raisedWith("event_seq"));
		assertThat(this.engine.newestTick(queue)).isEqualTo(10);
	}

	@Test
	void externalTickNeedsAnExternalQueue() {
		String queue = this.engine.queue();
		String tick = "select pgque.ticker(?, 10, now(), 50)";
		assertThat(this.engine.error(tick, queue)).satisfies(raisedWith("external"));
		assertThat(this.engine.error(tick, "nowhere")).isEqualTo(SqlError.raised("queue not found: nowhere"));
		assertThat(this.engine.error(tick, (String) null)).satisfies(raisedWith("queue not found"));
		this.engine.configure(queue, "external_ticker", "true");
		this.engine.configure(queue, "ticker_paused", "true");
		assertThat(this.engine.error(tick, queue)).satisfies(raisedWith("paused"));
	}

	@ParameterizedTest
	@ValueSource(strings = { "force_tick", "force_next_tick" })
	void forcedTickComesWithTheNextTicker(String function) {
		String queue = queueWithTwoTicks();
		String force = "select pgque." + function + "(?)";
		String sequence = "select last_value from " + this.engine.value(String.class,
				"select queue_event_seq from pgque.queue where queue_name = ?", queue);
		long before = this.engine.value(Long.class, sequence);
		assertThat(this.engine.value(Long.class, force, queue)).isEqualTo(2);
		assertThat(this.engine.value(Long.class, force, queue)).isEqualTo(2);
		assertThat(this.engine.value(Long.class, sequence)).isGreaterThanOrEqualTo(before + 2 * (2 * 500 + 1000));
		assertThat(tickAll()).isEqualTo(1);
		assertThat(this.engine.value(Long.class, "select last_tick_id from pgque.get_queue_info(?)", queue))
			.isEqualTo(3);
		assertThat(ticker(queue)).isNull();
	}

	@Test
	void forceOutlivesARollback() {
		String queue = queueWithTwoTicks();
		this.engine.rolledBack(() -> this.engine.value(Long.class, "select pgque.force_next_tick(?)", queue));
		assertThat(ticker(queue)).isEqualTo(3);
	}

	@Test
	void forceNeedsAQueueThatIsTickedFromHere() {
		String force = "select pgque.force_next_tick(?)";
		assertThat(this.engine.error(force, "nowhere")).isEqualTo(SqlError.raised("queue not found: nowhere"));
		String queue = this.engine.queue();
		this.engine.configure(queue, "ticker_paused", "true");
		assertThat(this.engine.error(force, queue)).satisfies(raisedWith("paused"));
		assertThat(this.engine.error(force, externalQueue())).satisfies(raisedWith("external"));
	}

	@Test
	void forceWithoutATickHasNoIdToTell() {
		String queue = this.engine.queue();
		this.engine.update("delete from pgque.tick where tick_queue = ?", this.engine.idOf(queue));
		assertThat(this.engine.value(Long.class, "select pgque.force_next_tick(?)", queue)).isNull();
		assertThat(ticker(queue)).isNotNull();
	}

	@Test
	void loopTicksOnceASecondAtItsLongestPeriod() {
		String queue = busyIdleQueue();
		this.engine.value(Integer.class, "select pgque.set_tick_period_ms(1000)");
		this.engine.execute("call pgque.ticker_loop()");
		assertThat(this.engine.newestTick(queue)).isEqualTo(3);
	}

	@Test
	void loopTicksSeveralTimesAndCommitsEachTime() {
		String queue = busyIdleQueue();
		this.engine.value(Integer.class, "select pgque.set_tick_period_ms(500)");
		this.engine.execute("call pgque.ticker_loop()");
		assertThat(this.engine.newestTick(queue)).isEqualTo(4);
		assertThat(this.engine.row("""
				select count(distinct xmin::text), max(tick_time) - min(tick_time) between '450 ms' and '5 s'
				from pgque.tick where tick_queue = ? and tick_id > 2
				""", this.engine.idOf(queue))).isEqualTo(tuple(2L, true));
	}

	@Test
	void loopMayNotRunWithinATransaction() {
		this.engine
			.inTransaction(() -> assertThat(this.engine.error("call pgque.ticker_loop()").state()).isEqualTo("2D000"));
	}

	@ParameterizedTest
	@ValueSource(ints = { 1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100, 125, 200, 250, 500, 1000 })
	void tickPeriodDividesASecond(int period) {
		assertThat(this.engine.value(Integer.class, "select pgque.set_tick_period_ms(?)", period)).isEqualTo(period);
		assertThat(this.engine.value(Integer.class, "select tick_period_ms from pgque.config")).isEqualTo(period);
	}

	@ParameterizedTest
	@CsvSource(nullValues = "NULL", value = { "0", "-1", "1001", "251", "750", "NULL" })
	void otherTickPeriodsAreRefused(Integer period) {
		assertThat(this.engine.error("select pgque.set_tick_period_ms(?)", period).state()).isEqualTo("P0001");
		assertThat(this.engine.value(Integer.class, "select tick_period_ms from pgque.config")).isEqualTo(100);
	}

	private Long ticker(String queue) {
		return this.engine.value(Long.class, "select pgque.ticker(?)", queue);
	}

	/**
	 * Call the ticker at a certain time after the second tick.
	 * @param lag seconds since that tick
	 * @param gap seconds between the first tick and the second
	 */
	private Long tickerAfter(String queue, double lag, double gap) {
		Long[] tick = new Long[1];
		this.engine.inTransaction(() -> {
			this.engine.update(
					"""
							update pgque.tick set tick_time = now() - make_interval(secs => ? + case tick_id when 1 then ? else 0 end)
							where tick_queue = ?
							""",
					lag, gap, this.engine.idOf(queue));
			tick[0] = ticker(queue);
		});
		return tick[0];
	}

	private long tickAll() {
		return this.engine.value(Long.class, "select pgque.ticker()");
	}

	/**
	 * A queue whose second tick was taken just now, and the first a second ago.
	 */
	private String queueWithTwoTicks() {
		String queue = this.engine.queue("c");
		this.engine.age(queue, "1 second");
		this.engine.send(queue, "x");
		assertThat(this.engine.tick(queue)).isEqualTo(2);
		return queue;
	}

	/**
	 * A queue that every pass of a ticker ticks.
	 */
	private String busyIdleQueue() {
		String queue = queueWithTwoTicks();
		this.engine.configure(queue, "ticker_max_lag", "1 millisecond");
		this.engine.configure(queue, "ticker_idle_period", "1 millisecond");
		this.engine.age(queue, "1 second");
		return queue;
	}

	private String externalQueue() {
		String queue = this.engine.queue();
		this.engine.configure(queue, "external_ticker", "true");
		return queue;
	}

	/**
	 * Let the newest tick be one of a cluster with higher transaction ids.
	 */
	private void fromTheFuture(String queue) {
		this.engine.update("update pgque.tick set tick_snapshot = '9999999999:9999999999:' where tick_queue = ?",
				this.engine.idOf(queue));
	}

	private static java.util.function.Consumer<SqlError> raisedWith(String word) {
		return (error) -> {
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).contains(word);
		};
	}

}
