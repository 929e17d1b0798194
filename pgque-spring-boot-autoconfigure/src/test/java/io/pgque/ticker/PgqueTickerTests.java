package io.pgque.ticker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.EventExtras;
import io.pgque.client.Nack;
import io.pgque.client.Page;
import io.pgque.client.PgqueClient;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.apache.commons.logging.LogFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.awaitility.Awaitility.await;

/**
 * Tests for {@link PgqueTicker}.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class PgqueTickerTests {

	private static final Duration NEVER = Duration.ofHours(1);

	private static int number;

	private static HikariDataSource pool;

	private final TestDatabase database;

	private final PgqueClient client;

	private final String queue = "queue" + (++number);

	private PgqueTicker ticker;

	PgqueTickerTests(TestDatabase database) {
		this.database = database;
		this.client = new PgqueClient(pool);
	}

	@BeforeAll
	static void createPool(TestDatabase database) {
		pool = database.pool(4);
	}

	@BeforeEach
	void createQueue() {
		this.client.createQueue(this.queue);
		this.client.subscribe(this.queue, "c");
	}

	@AfterEach
	void stop() {
		if (this.ticker != null) {
			this.ticker.stop();
		}
		assertThat(Thread.getAllStackTraces().keySet()).extracting(Thread::getName)
			.doesNotContain("pgque-ticker", "pgque-maintenance");
	}

	private void start(DataSource dataSource, TickerSettings settings) {
		this.ticker = new PgqueTicker(dataSource, settings);
		this.ticker.start();
	}

	private void start(TickerSettings settings) {
		start(pool, settings);
	}

	private static TickerSettings settings(Duration interval) {
		return new TickerSettings(TickerMode.AUTO, interval, true, Duration.ofMillis(5), NEVER, NEVER, NEVER);
	}

	private Page received() {
		return this.client.receiveBatch(this.queue, "c", 1000, 1_000_000);
	}

	private void finish(Page page) {
		this.client.settle(page.batchId(), null, List.of());
	}

	private long lastTick() {
		return this.database.value(Long.class, "select last_tick_id from pgque.get_queue_info(?)", this.queue);
	}

	@Test
	void ticksOnItsInterval() {
		start(settings(Duration.ofMillis(20)));
		for (int i = 0; i < 3; i++) {
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
			await().until(() -> received().rows().size() == 1);
			finish(received());
		}
	}

	@Test
	void ticksAtOnceAfterCommit() {
		start(settings(NEVER));
		for (int i = 0; i < 20; i++) {
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
			long start = System.nanoTime();
			this.ticker.committed(Set.of(this.queue));
			await().pollInterval(Duration.ofMillis(1)).until(() -> !received().isEmpty());
			assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(2));
			finish(received());
		}
	}

	@Test
	void tellsOfItsTicks() {
		List<String> told = new CopyOnWriteArrayList<>();
		this.ticker = new PgqueTicker(pool, settings(NEVER));
		this.ticker.setTickListener((queue, tickId) -> told.add(queue + " " + tickId));
		this.ticker.start();
		awaitFirstPass();
		told.clear();
		this.client.send(this.queue, "t", "x", EventExtras.NONE);
		this.ticker.committed(Set.of(this.queue));
		await().until(() -> told.equals(List.of(this.queue + " " + lastTick())));
	}

	@Test
	void offersTicksAfterCommitsFirst() {
		List<Runnable> offered = new CopyOnWriteArrayList<>();
		this.ticker = new PgqueTicker(pool,
				new TickerSettings(TickerMode.AUTO, NEVER, true, Duration.ZERO, NEVER, NEVER, NEVER));
		this.ticker.setTickDelegate((queue, handBack) -> offered.add(handBack));
		this.ticker.start();
		awaitFirstPass();
		awaitOffer(offered::isEmpty);
		offered.clear();
		long before = lastTick();
		this.client.send(this.queue, "t", "x", EventExtras.NONE);
		this.ticker.committed(Set.of(this.queue));
		assertThat(offered).hasSize(1);
		await().during(Duration.ofMillis(100)).until(() -> lastTick() == before);
		offered.get(0).run();
		await().until(() -> lastTick() == before + 1);
	}

	@Test
	void offersNoMoreTicksThanItMayTake() {
		AtomicInteger offers = new AtomicInteger();
		this.ticker = new PgqueTicker(pool,
				new TickerSettings(TickerMode.ALWAYS, NEVER, true, Duration.ofSeconds(3), NEVER, NEVER, NEVER));
		this.ticker.setTickDelegate((queue, handBack) -> offers.incrementAndGet() > 0);
		this.ticker.start();
		awaitFirstPass();
		long before = lastTick();
		awaitOffer(() -> offers.get() == 0);
		this.client.send(this.queue, "t", "x", EventExtras.NONE);
		this.ticker.committed(Set.of(this.queue));
		assertThat(offers).hasValue(1);
		await().until(() -> lastTick() == before + 1);
	}

	/**
	 * The ticker has made its first pass a moment before it knows that it can tick; what
	 * it was told until then, it ticks itself.
	 */
	private void awaitOffer(BooleanSupplier none) {
		await().until(() -> {
			this.ticker.committed(Set.of(this.queue));
			return !none.getAsBoolean();
		});
		await().during(Duration.ofMillis(100)).until(() -> true);
	}

	@Test
	void whileItCannotTickNobodyIsOffered(CapturedOutput output) {
		AtomicInteger offers = new AtomicInteger();
		DataSource writer = this.database.createLogin("pgque_writer").dataSource();
		this.ticker = new PgqueTicker(writer, settings(Duration.ofMillis(10)));
		this.ticker.setTickDelegate((queue, handBack) -> offers.incrementAndGet() > 0);
		this.ticker.start();
		await().until(() -> output.getOut().contains("This instance does not tick"));
		this.ticker.committed(Set.of(this.queue));
		assertThat(offers).hasValue(0);
	}

	@Test
	void looksLessOftenWhileNothingHappens() {
		AtomicInteger calls = new AtomicInteger();
		AtomicBoolean busy = new AtomicBoolean();
		Duty duty = new Duty("look", Duration.ofMillis(100), 3, Duration.ofMillis(50), () -> {
			calls.incrementAndGet();
			return busy.get();
		});
		assertThat(timeToNext(duty)).isLessThanOrEqualTo(100);
		await().pollInterval(Duration.ofMillis(5)).until(() -> timeToNext(duty) > 250);
		busy.set(true);
		assertThat(timeToNext(duty)).isLessThanOrEqualTo(100);
		busy.set(false);
		await().pollInterval(Duration.ofMillis(5)).until(() -> timeToNext(duty) > 250);
		duty.wakeUp();
		assertThat(Duration.ofNanos(duty.due() - System.nanoTime()).toMillis()).isLessThanOrEqualTo(100);
	}

	private static long timeToNext(Duty duty) {
		duty.run();
		return Duration.ofNanos(duty.due() - System.nanoTime()).toMillis();
	}

	@Test
	void doesNotTickWithoutEvents() {
		long before = lastTick();
		start(settings(Duration.ofMillis(1)));
		this.client.createQueue(this.queue + "b");
		this.client.subscribe(this.queue + "b", "c");
		this.client.send(this.queue + "b", "t", "x", EventExtras.NONE);
		this.ticker.committed(Set.of(this.queue, this.queue + "b"));
		await().until(() -> !this.client.receiveBatch(this.queue + "b", "c", 10, 1000).isEmpty());
		assertThat(lastTick()).isEqualTo(before);
	}

	@Test
	void coalescesNudges() {
		long before = lastTick();
		start(new TickerSettings(TickerMode.ALWAYS, NEVER, true, Duration.ofMillis(200), NEVER, NEVER, NEVER));
		int events = 300;
		long start = System.nanoTime();
		for (int i = 0; i < events; i++) {
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
			this.ticker.committed(Set.of(this.queue));
		}
		await().until(
				() -> this.database.value(Long.class, "select ev_new from pgque.get_queue_info(?)", this.queue) == 0);
		long intervals = Duration.ofNanos(System.nanoTime() - start).dividedBy(Duration.ofMillis(200));
		assertThat(lastTick() - before).isBetween(1L, intervals + 2);
		assertThat(received().rows()).hasSize(events);
	}

	@Test
	void ticksRarelyWhereNobodyIsSubscribed() {
		String unread = this.queue + "-unread";
		this.client.createQueue(unread);
		start(settings(NEVER));
		awaitFirstPass();
		long start = System.nanoTime();
		for (int i = 0; i < 300; i++) {
			this.client.send(unread, "t", "x", EventExtras.NONE);
			this.ticker.committed(Set.of(unread));
		}
		await().until(() -> this.database.value(Long.class, "select ev_new from pgque.get_queue_info(?)", unread) == 0);
		long rests = Duration.ofNanos(System.nanoTime() - start).dividedBy(Duration.ofMillis(200));
		assertThat(this.database.value(Long.class, "select last_tick_id from pgque.get_queue_info(?)", unread))
			.as("the tick of the creation, that of the first commit, and one for each rest")
			.isLessThanOrEqualTo(2 + rests + 1);
	}

	@Test
	void sendsDelayedEvents() {
		this.database.query("select pgque.send_after(?, 't', 'late'::text, interval '50 ms')", this.queue);
		start(new TickerSettings(TickerMode.ALWAYS, Duration.ofMillis(20), true, Duration.ZERO, Duration.ofMillis(20),
				NEVER, NEVER));
		await().until(() -> received().rows().size() == 1);
	}

	@Test
	void servesCommitThatMetABusyQueue() throws SQLException {
		start(settings(NEVER));
		// Else the tick of the start may come between the two events.
		awaitFirstPass();
		long before = lastTick();
		try (Connection other = this.database.connect(); Statement statement = other.createStatement()) {
			this.client.send(this.queue, "t", "first", EventExtras.NONE);
			other.setAutoCommit(false);
			statement.execute("select * from pgque.tick_now(array['" + this.queue + "'])");
			this.client.send(this.queue, "t", "second", EventExtras.NONE);
			this.ticker.committed(Set.of(this.queue));
			// The other session holds the queue and its tick came too early for the
			// second event.
			await().during(Duration.ofMillis(100)).until(() -> received().isEmpty());
			other.commit();
		}
		// Not by receiving: that would open a batch of the first tick alone.
		await().until(() -> lastTick() == before + 2);
		assertThat(received().rows()).hasSize(2);
	}

	@Test
	void commitsDoNotCountWhereTheyAreSwitchedOff() {
		start(new TickerSettings(TickerMode.AUTO, NEVER, false, Duration.ZERO, NEVER, NEVER, NEVER));
		awaitFirstPass();
		this.client.send(this.queue, "t", "x", EventExtras.NONE);
		this.ticker.committed(Set.of(this.queue));
		await().during(Duration.ofMillis(200)).until(() -> received().isEmpty());
	}

	/**
	 * Everything is due at the start, so an event sent before is visible after the pass.
	 */
	private void awaitFirstPass() {
		String marker = this.queue + "-marker";
		this.client.createQueue(marker);
		this.client.subscribe(marker, "c");
		this.client.send(marker, "t", "x", EventExtras.NONE);
		this.ticker.stop();
		this.ticker.start();
		await().until(() -> !this.client.receiveBatch(marker, "c", 10, 1000).isEmpty());
	}

	@Test
	void movesAllDueRetriesBack() {
		for (int i = 0; i < 25; i++) {
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
		}
		this.client.tickAll();
		Page page = received();
		this.client.settle(page.batchId(), null,
				page.rows().stream().map((row) -> Nack.retry(row.id(), Duration.ZERO, "again")).toList());
		start(new TickerSettings(TickerMode.AUTO, Duration.ofMillis(20), true, Duration.ZERO, Duration.ofMillis(50),
				NEVER, NEVER));
		await().until(() -> received().rows().size() == 25);
		assertThat(received().rows()).extracting("retryCount").containsOnly(1);
	}

	@Test
	void rotates() {
		this.client.setQueueConfig(this.queue, "rotation_period", "PT0.05S");
		start(new TickerSettings(TickerMode.AUTO, Duration.ofMillis(20), true, Duration.ZERO, NEVER,
				Duration.ofMillis(20), Duration.ofMillis(20)));
		Set<Integer> slots = new HashSet<>();
		await().until(() -> {
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
			Page page = received();
			if (!page.isEmpty()) {
				finish(page);
			}
			slots.add(this.database.value(Integer.class, "select queue_cur_table from pgque.queue where queue_name = ?",
					this.queue));
			return slots.size() == 3;
		});
	}

	@Test
	void slowHookDelaysNoTickAndIsCancelledAlone(CapturedOutput output) {
		this.database.execute("create table public.hook_calls (queue text)");
		this.database.execute("create function pgque.slow_hook(i_queue text) returns integer language sql as "
				+ "$$ select 1 from pg_catalog.pg_sleep(30) $$");
		this.database.execute("create function pgque.quick_hook(i_queue text) returns integer language sql as "
				+ "$$ insert into public.hook_calls values (i_queue) returning 1 $$");
		this.database.update("update pgque.queue set queue_extra_maint = '{slow_hook,quick_hook}' where queue_name = ?",
				this.queue);
		try {
			this.client.setQueueConfig(this.queue, "rotation_period", "PT0.05S");
			this.ticker = new PgqueTicker(pool, new TickerSettings(TickerMode.AUTO, NEVER, true, Duration.ZERO, NEVER,
					Duration.ofMillis(20), Duration.ofMillis(20)), Duration.ofSeconds(30), Duration.ofSeconds(1));
			this.ticker.start();
			for (int round = 0; round < 5; round++) {
				await().until(() -> sleeping() == 1);
				this.client.send(this.queue, "t", "x", EventExtras.NONE);
				this.ticker.committed(Set.of(this.queue));
				await().atMost(Duration.ofMillis(800)).until(() -> received().rows().size() == 1);
				finish(received());
			}
			await().until(() -> this.database.value(Integer.class,
					"select queue_cur_table from pgque.queue where queue_name = ?", this.queue) > 0);
			await().until(() -> this.database.values(String.class, "select queue from public.hook_calls").size() > 1);
			assertThat(output.getOut()).doesNotContain("Could not run the maintenance");
			assertThat(output.getOut().split("Could not run hook slow_hook of queue '" + this.queue + "'", -1))
				.hasSize(2);
		}
		finally {
			this.ticker.stop();
			terminateOthers();
			this.database.update("update pgque.queue set queue_extra_maint = null where queue_name = ?", this.queue);
			this.database.execute("drop function pgque.slow_hook(text)");
			this.database.execute("drop function pgque.quick_hook(text)");
			this.database.execute("drop table public.hook_calls");
		}
	}

	private int sleeping() {
		return this.database.value(Integer.class,
				"select count(*)::int from pg_stat_activity where datname = current_database() and "
						+ "wait_event = 'PgSleep'");
	}

	@Test
	void oneFailureIsNotMany(CapturedOutput output) {
		Failures failures = new Failures(LogFactory.getLog(PgqueTicker.class));
		failures.failed("tick queues", new IllegalStateException("once"));
		failures.succeeded("tick queues");
		failures.failed("tick queues", new IllegalStateException("once"));
		failures.failed("tick queues", new IllegalStateException("twice"));
		failures.succeeded("tick queues");
		assertThat(output.getOut()
			.lines()
			.filter((line) -> line.contains("again, after "))
			.map((line) -> line.replaceAll(".*again, after ", ""))).containsExactly("1 failure", "2 failures");
	}

	@Test
	void standsDownForASchedulerButServesItsOwnCommits(CapturedOutput output) {
		this.database.execute("update pgque.config set scheduler = 'pg_cron'");
		try {
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
			start(settings(Duration.ofMillis(10)));
			await().until(() -> output.getOut().contains("pg_cron ticks"));
			await().during(Duration.ofMillis(200)).until(() -> received().isEmpty());
			this.ticker.committed(Set.of(this.queue));
			await().until(() -> received().rows().size() == 1);
			this.ticker.stop();
			finish(received());
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
			start(new TickerSettings(TickerMode.ALWAYS, Duration.ofMillis(10), true, Duration.ZERO, NEVER, NEVER,
					NEVER));
			await().until(() -> received().rows().size() == 1);
		}
		finally {
			this.database.execute("update pgque.config set scheduler = null");
		}
	}

	@Test
	void offIsOff() {
		start(new TickerSettings(TickerMode.OFF, Duration.ofMillis(1), true, Duration.ZERO, NEVER, NEVER, NEVER));
		assertThat(this.ticker.isRunning()).isFalse();
		this.ticker.committed(Set.of(this.queue));
	}

	@Test
	void saysOnceThatAGrantIsMissing(CapturedOutput output) {
		DataSource writer = this.database.createLogin("pgque_writer").dataSource();
		start(writer, settings(Duration.ofMillis(10)));
		await().until(() -> output.getOut().contains("This instance does not tick"));
		this.ticker.committed(Set.of(this.queue));
		await().during(Duration.ofMillis(300)).until(() -> output.getOut().lines().count() == 1);
		assertThat(output.getOut()).contains("pgque_admin", "pgque.ticker.mode=off").doesNotContain("\tat ");
	}

	@Test
	void oneDutyThatFailsKeepsNoOtherBack(CapturedOutput output) {
		this.database.execute("alter function pgque.maint_retry_events() rename to maint_retry_events_away");
		this.database.execute("create function pgque.maint_retry_events() returns integer language plpgsql as "
				+ "$$ begin raise exception 'out of order'; end $$");
		try {
			start(new TickerSettings(TickerMode.AUTO, Duration.ofMillis(10), true, Duration.ZERO, Duration.ofMillis(10),
					NEVER, NEVER));
			await().until(() -> output.getOut().contains("Could not move due retries for the 3. time"));
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
			await().until(() -> received().rows().size() == 1);
			assertThat(output.getOut().split("PgqueException: out of order", -1)).hasSize(2);
		}
		finally {
			this.database.execute("drop function pgque.maint_retry_events()");
			this.database.execute("alter function pgque.maint_retry_events_away() rename to maint_retry_events");
		}
		await().until(() -> output.getOut().contains("Can move due retries again"));
	}

	@Test
	void outlivesAnOutage(CapturedOutput output) {
		try (HikariDataSource own = this.database.pool(2)) {
			own.setConnectionTimeout(300);
			start(own, settings(Duration.ofMillis(10)));
			awaitFirstPass();
			administration("alter database " + this.database.name() + " allow_connections false");
			// Those that are open are cut off; new ones are refused.
			terminateOthers();
			try {
				await().until(() -> output.getOut().contains("Could not reach the database for the 3. time"));
				this.ticker.committed(Set.of(this.queue));
			}
			finally {
				allowConnections();
			}
			this.client.send(this.queue, "t", "x", EventExtras.NONE);
			await().atMost(Duration.ofSeconds(10)).until(() -> received().rows().size() == 1);
			assertThat(output.getOut().lines().filter((line) -> line.contains("Could not reach")).count())
				.isLessThan(10);
			assertThat(output.getOut().split("Could not reach the database, trying again", -1)).hasSize(2);
			await().until(() -> output.getOut().contains("Can reach the database again"));
		}
	}

	private void terminateOthers() {
		administration("select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + this.database.name()
				+ "'");
		// The pool would trust for a while those that it has used just now.
		pool.getHikariPoolMXBean().softEvictConnections();
	}

	private void allowConnections() {
		administration("alter database " + this.database.name() + " allow_connections true");
	}

	private void administration(String sql) {
		try (TestDatabase other = TestDatabase.empty()) {
			other.execute(sql);
		}
	}

	@Test
	void stopsWithinASecondWhenThePoolIsEmpty() throws SQLException {
		try (HikariDataSource own = this.database.pool(1); Connection taken = own.getConnection()) {
			start(own, settings(Duration.ofMillis(10)));
			await().until(() -> own.getHikariPoolMXBean().getThreadsAwaitingConnection() == 1);
			assertStopsQuickly();
			assertThat(taken.isClosed()).isFalse();
		}
	}

	@Test
	void stopsWithinASecondWhenTheDatabaseDoesNotAnswer() throws Exception {
		this.database.execute("alter function pgque.tick_now() rename to tick_now_away");
		this.database.execute("create function pgque.tick_now(out queue_name text, out tick_id bigint, "
				+ "out outcome text, out detail text) returns setof record language sql as "
				+ "'select null::text, null::bigint, null::text, null::text from pg_sleep(3)'");
		Thread worker;
		try {
			start(settings(Duration.ofMillis(10)));
			await().until(() -> sleeping() == 1);
			worker = Thread.getAllStackTraces()
				.keySet()
				.stream()
				.filter((thread) -> thread.getName().equals("pgque-ticker"))
				.findFirst()
				.orElseThrow();
			assertStopsQuickly();
		}
		finally {
			terminateOthers();
			this.database.execute("drop function pgque.tick_now()");
			this.database.execute("alter function pgque.tick_now_away() rename to tick_now");
		}
		worker.join(5000);
	}

	private void assertStopsQuickly() {
		long start = System.nanoTime();
		this.ticker.stop();
		assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(1));
		assertThat(this.ticker.isRunning()).isFalse();
	}

	@Test
	void startsAgain() {
		start(settings(Duration.ofMillis(10)));
		this.ticker.start();
		this.ticker.stop();
		this.ticker.stop();
		this.ticker.start();
		assertThat(this.ticker.isRunning()).isTrue();
		this.client.send(this.queue, "t", "x", EventExtras.NONE);
		await().until(() -> received().rows().size() == 1);
	}

	@Test
	void startsBeforeListenersAndStopsAfterThem() {
		PgqueTicker defaults = new PgqueTicker(this.database.dataSource(), TickerSettings.DEFAULTS);
		assertThat(defaults.getPhase()).isEqualTo(Integer.MAX_VALUE - 200);
		assertThat(defaults.isAutoStartup()).isTrue();
		assertThat(defaults.getSettings()).isEqualTo(TickerSettings.DEFAULTS);
	}

	@Test
	void settingsAreChecked() {
		assertThatIllegalArgumentException()
			.isThrownBy(
					() -> new TickerSettings(TickerMode.AUTO, Duration.ZERO, true, Duration.ZERO, NEVER, NEVER, NEVER))
			.withMessageContaining("interval");
		assertThatIllegalArgumentException()
			.isThrownBy(
					() -> new TickerSettings(TickerMode.AUTO, NEVER, true, Duration.ofMillis(-1), NEVER, NEVER, NEVER))
			.withMessageContaining("min-interval");
	}

}
