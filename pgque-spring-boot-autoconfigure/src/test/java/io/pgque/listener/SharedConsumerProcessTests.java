package io.pgque.listener;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Several JVMs share one consumer and are killed, frozen beyond their lease, stopped and
 * started. A short form of it runs in the build, the long one with
 * {@code -Dpgque.soak=true}, which the Maven profile {@code soak} sets.
 */
@PgqueDatabase
@DisabledOnOs(value = OS.WINDOWS, disabledReason = "Nothing freezes a process there")
class SharedConsumerProcessTests {

	private static final boolean SOAK = Boolean.getBoolean("pgque.soak");

	private static final int MESSAGES = SOAK ? 100_000 : 3_000;

	private static final Duration CHAOS = Duration.ofMinutes(2);

	private static final int KEYS = 20;

	private static final String OBSERVATION = """
			create table if not exists handling (
			    hno bigint generated always as identity primary key, event bigint not null, key text, instance text not null,
			    started timestamptz not null default clock_timestamp(), finished timestamptz);
			create index if not exists handling_started on handling (started);
			truncate handling;
			create table if not exists position (
			    pno bigint generated always as identity, sub bigint, seq bigint, last_tick bigint, next_tick bigint, prefix bigint);
			truncate position;
			create or replace function note_position() returns trigger language plpgsql as $$
			begin
			    insert into public.position (sub, seq, last_tick, next_tick, prefix)
			    values (new.cur_sub, new.cur_seq, new.cur_last_tick, new.cur_next_tick, new.cur_prefix);
			    return null;
			end
			$$;
			create or replace trigger note_position after insert on pgque_internal.cursor
			for each row execute function note_position();
			""";

	private final TestDatabase database;

	private final PgqueClient client;

	private final List<InstanceProcess> processes = new ArrayList<>();

	private final AtomicInteger names = new AtomicInteger();

	@TempDir
	private Path logs;

	private String queue;

	private ListenerMode mode;

	private int concurrency;

	private boolean holdKeys;

	private int kills;

	private final List<String> frozen = new ArrayList<>();

	SharedConsumerProcessTests(TestDatabase database) {
		this.database = database;
		this.client = new PgqueClient(database.pool(2));
	}

	@BeforeEach
	void observe() {
		this.database.execute(OBSERVATION);
	}

	@AfterEach
	void killAll() {
		this.processes.forEach(InstanceProcess::close);
		this.database.execute("drop trigger note_position on pgque_internal.cursor");
	}

	@ParameterizedTest
	@CsvSource({ "EXCLUSIVE, 1, false", "COOPERATIVE, 2, false", "PARTITIONED, 2, false", "PARTITIONED, 2, true" })
	void nothingIsLostAndOrderIsKept(ListenerMode mode, int concurrency, boolean holdKeys) throws Exception {
		this.mode = mode;
		this.concurrency = concurrency;
		this.holdKeys = holdKeys;
		this.queue = "processes_" + mode.name().toLowerCase(Locale.ROOT) + (holdKeys ? "_hold" : "");
		for (int i = 0; i < 3; i++) {
			start();
		}
		await().until(this::allListen);
		Thread sender = new Thread(this::send, "sender");
		ScheduledExecutorService retries = Executors.newSingleThreadScheduledExecutor();
		try {
			retries.scheduleWithFixedDelay(this::moveRetries, 0, 50, TimeUnit.MILLISECONDS);
			sender.start();
			if (SOAK) {
				randomly(new Random(mode.ordinal()));
			}
			else {
				onceEach();
			}
			sender.join();
			await().atMost(Duration.ofMinutes(5)).until(() -> handled() == MESSAGES);
		}
		finally {
			retries.shutdown();
		}
		for (InstanceProcess process : this.processes) {
			if (process.isAlive()) {
				process.stop();
			}
		}
		verify();
	}

	@Test
	void oneOfThreeProcessesHandlesEverythingOnce() throws Exception {
		int messages = 10_000;
		this.mode = ListenerMode.EXCLUSIVE;
		this.concurrency = 4;
		this.queue = "processes_undisturbed";
		for (int i = 0; i < 3; i++) {
			start();
		}
		await().until(this::allListen);
		PgqueClient client = new PgqueClient(this.database.pool(2));
		List<String> payloads = IntStream.range(0, 500).mapToObj(Integer::toString).toList();
		for (int sent = 0; sent < messages; sent += payloads.size()) {
			client.sendBatch(this.queue, "type", payloads);
			client.tick(List.of(this.queue));
		}
		await().atMost(Duration.ofMinutes(2)).until(() -> handled() == messages);
		assertThat(this.database.value(Integer.class, "select count(*)::int from handling")).isEqualTo(messages);
		assertThat(this.database.value(Integer.class, "select count(distinct instance)::int from handling")).isOne();
		for (InstanceProcess process : this.processes) {
			process.stop();
		}
		assertThat(this.processes).extracting(InstanceProcess::output)
			.filteredOn((output) -> output.contains("this one stands by"))
			.hasSize(2);
	}

	/**
	 * A session that listens asks once in a while whether its server takes writes.
	 */
	private boolean allListen() {
		return this.database.value(Integer.class,
				"select count(*)::int from pg_stat_activity where datname = current_database()"
						+ " and (query like 'listen %' or query = 'show transaction_read_only')") == 3;
	}

	private void onceEach() throws Exception {
		awaitProgress(200);
		InstanceProcess killed = active();
		killed.kill();
		this.kills++;
		start();
		awaitTakeoverFrom(killed);
		awaitProgress(100);
		InstanceProcess frozen = active();
		frozen.freeze();
		this.frozen.add(frozen.name());
		awaitTakeoverFrom(frozen);
		awaitProgress(100);
		frozen.thaw();
		awaitProgress(100);
		InstanceProcess stopped = active();
		stopped.stop();
		awaitTakeoverFrom(stopped);
		start();
	}

	private void randomly(Random random) throws Exception {
		long end = System.nanoTime() + CHAOS.toNanos();
		while (System.nanoTime() < end) {
			List<InstanceProcess> alive = this.processes.stream().filter(InstanceProcess::isAlive).toList();
			InstanceProcess victim = alive.get(random.nextInt(alive.size()));
			switch (random.nextInt(3)) {
				case 0 -> {
					victim.kill();
					this.kills++;
				}
				case 1 -> {
					victim.freeze();
					this.frozen.add(victim.name());
					LockSupport.parkNanos(InstanceMain.LEASE.multipliedBy(2).toNanos());
					victim.thaw();
				}
				default -> victim.stop();
			}
			if (!victim.isAlive()) {
				start();
			}
			LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(4000)));
		}
	}

	private void start() throws Exception {
		this.processes.add(InstanceProcess.start(this.database, this.queue, this.mode, this.concurrency, this.holdKeys,
				"i" + this.names.incrementAndGet(), this.logs));
	}

	/**
	 * Send in the order of the ids, with keys, more slowly than they are handled.
	 */
	private void send() {
		for (int i = 0; i < MESSAGES; i++) {
			this.client.send(this.queue, "type", "" + i, new EventExtras("key " + i % KEYS, null, null, null));
			if (i % 10 == 9) {
				this.client.tick(List.of(this.queue));
				LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(SOAK ? 8 : 25));
			}
		}
		this.client.tick(List.of(this.queue));
	}

	private void moveRetries() {
		if (this.client.moveDueRetries() > 0) {
			this.client.tick(List.of(this.queue));
		}
	}

	private static ConditionFactory await() {
		return Awaitility.await().atMost(Duration.ofSeconds(60)).pollInterval(Duration.ofMillis(50));
	}

	private int handled() {
		return this.database.value(Integer.class,
				"select count(distinct event)::int from handling where finished is not null");
	}

	private void awaitProgress(int messages) {
		int target = Math.min(handled() + messages, MESSAGES);
		await().until(() -> handled() >= target);
	}

	/**
	 * The instance that has begun the last handling.
	 */
	private InstanceProcess active() {
		String name = this.database.value(String.class, "select instance from handling order by hno desc limit 1");
		return this.processes.stream().filter((process) -> process.name().equals(name)).findFirst().orElseThrow();
	}

	private void awaitTakeoverFrom(InstanceProcess gone) {
		Long seen = this.database.value(Long.class, "select max(hno) from handling");
		await().until(() -> handled() == MESSAGES || this.database.value(Integer.class,
				"select count(*)::int from handling where hno > ? and instance <> ?", seen, gone.name()) >= 10);
	}

	private void verify() {
		int inFlight = this.frozen.size() * this.concurrency;
		assertThat(repeated()).as("events handled more than once: those of batches open at a kill or a freeze")
			.isLessThanOrEqualTo((this.kills + this.frozen.size()) * this.concurrency * InstanceMain.PAGE_SIZE);
		assertThat(movesBack()).as("positions that moved back: something was settled twice").isZero();
		if (this.mode != ListenerMode.COOPERATIVE) {
			assertThat(outOfOrder()).as("out of order, except what was in flight when its owner was frozen")
				.isLessThanOrEqualTo(inFlight);
			assertThat(overlapping("frozen is null")).as("handled at the same time by two instances").isZero();
			assertThat(overlapping("frozen is not null"))
				.as("handled at the same time by an instance that had been frozen and another, except what was in flight")
				.isLessThanOrEqualTo(inFlight);
		}
		assertThat(this.database.value(Integer.class, "select count(*)::int from pgque.dead_letters(null, 1000)"))
			.isZero();
		assertThat(this.database.value(Integer.class, "select count(*)::int from pgque.retry_queue")).isZero();
		assertThat(this.database.value(Integer.class, "select count(*)::int from pgque.get_consumer_info(?)"
				+ " where current_batch is not null or pending_events > 0", this.queue))
			.isZero();
		if (this.mode == ListenerMode.EXCLUSIVE && !SOAK) {
			assertThat(this.processes).extracting(InstanceProcess::output)
				.anyMatch((output) -> output.contains("was no longer open when it was to be settled")
						|| output.contains("is lost: "));
		}
	}

	private int repeated() {
		return this.database.value(Integer.class, "select (count(*) - count(distinct event))::int from handling");
	}

	private int movesBack() {
		return this.database.value(Integer.class,
				"""
						select count(*)::int
						from (select p.*, lag(last_tick) over s as last_before,
						             max(prefix) over (partition by last_tick, next_tick, case when %s then 0 else sub end
						                               order by pno rows between unbounded preceding and 1 preceding) as prefix_before
						      from position p
						      window s as (partition by sub order by seq)) p
						where p.last_tick < p.last_before or p.prefix < p.prefix_before
						"""
					.formatted(this.mode == ListenerMode.COOPERATIVE));
	}

	/**
	 * By the last time that each event was handled: what was open is handled again.
	 */
	private int outOfOrder() {
		return this.database.value(Integer.class,
				"""
						select count(*)::int
						from (select event, max(event) over (%s order by hno rows between unbounded preceding and 1 preceding) as before
						      from (select distinct on (event) event, key, hno from handling order by event, hno desc) l) x
						where event < before
						"""
					.formatted((this.mode == ListenerMode.PARTITIONED || this.holdKeys) ? "partition by key" : ""));
	}

	/**
	 * Count pairs of handlers that ran at the same time, by the one whose instance was
	 * frozen at some time. It need not be the one that began first: a process may be
	 * frozen before the first statement of its handler.
	 */
	private int overlapping(String condition) {
		this.database.execute("analyze handling");
		return this.database.value(Integer.class,
				"""
						select count(distinct coalesce(frozen, hno))::int
						from (select a.hno, case when a.instance = any (string_to_array(?, ',')) then a.hno
						                         when b.instance = any (string_to_array(?, ',')) then b.hno end as frozen
						      from handling a
						      join handling b on b.instance <> a.instance and b.started > a.started and b.started < a.finished %s) p
						where %s
						"""
					.formatted((this.mode == ListenerMode.PARTITIONED) ? "and b.key = a.key" : "", condition),
				String.join(",", this.frozen), String.join(",", this.frozen));
	}

}
