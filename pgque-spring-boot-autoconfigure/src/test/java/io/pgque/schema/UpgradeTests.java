package io.pgque.schema;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;

import io.pgque.client.EventExtras;
import io.pgque.client.EventRow;
import io.pgque.client.Nack;
import io.pgque.client.Page;
import io.pgque.client.PgqueClient;
import io.pgque.testsupport.StatementCounter;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests for the upgrade from each release that was made. Their migrations are kept as
 * they were; see docs/releasing.md.
 */
class UpgradeTests {

	/**
	 * The common pool has a single thread on two cores, which one endless task would keep
	 * from all others.
	 */
	private static final Executor THREADS = (task) -> new Thread(task).start();

	private static final Path RELEASES = Path.of("src/test/resources/io/pgque/releases");

	private static final Path MIGRATIONS = Path.of("src/main/resources/io/pgque/schema/log");

	private final TestDatabase database = TestDatabase.empty();

	private final PgqueClient client = new PgqueClient(this.database.dataSource());

	@AfterEach
	void dropDatabase() {
		this.database.close();
	}

	static List<String> releases() throws IOException {
		try (Stream<Path> folders = Files.list(RELEASES)) {
			return folders.map((folder) -> folder.getFileName().toString()).sorted().toList();
		}
	}

	@ParameterizedTest
	@MethodSource("releases")
	void versionedMigrationsStayAsTheyWereReleased(String release) throws IOException {
		try (Stream<Path> files = Files.list(RELEASES.resolve(release))) {
			List<Path> versioned = files.filter((file) -> file.getFileName().toString().startsWith("V")).toList();
			assertThat(versioned).isNotEmpty()
				.allSatisfy((file) -> assertThat(MIGRATIONS.resolve(file.getFileName()))
					.as("put changes into a new versioned migration")
					.hasSameTextualContentAs(file));
		}
	}

	@ParameterizedTest
	@MethodSource("releases")
	void upgradedSchemaIsTheOneOfAFreshInstallation(String release) {
		install(release);
		upgrade();
		try (TestDatabase fresh = TestDatabase.migrated()) {
			assertThat(this.database.values(String.class, InstallScriptTests.OBJECTS))
				.isEqualTo(fresh.values(String.class, InstallScriptTests.OBJECTS));
		}
	}

	@ParameterizedTest
	@MethodSource("releases")
	void whatWasGoingOnGoesOn(String release) {
		install(release);
		this.client.createQueue("q");
		this.client.setQueueConfig("q", "max_retries", "1");
		this.client.subscribe("q", "settled");
		this.client.subscribe("q", "open");
		this.client.subscribe("q", "late");
		List<Long> ids = new ArrayList<>(sendAsBefore("a", "b", "c", "d", "e"));
		this.client.tickAll();
		long settled = receive("settled").batchId();
		this.client.settle(settled, null,
				List.of(Nack.retry(ids.get(1), Duration.ZERO, "again"), Nack.dead(ids.get(2), "hopeless")));
		long open = receive("open").batchId();
		this.client.settle(open, ids.get(1), List.of());
		open = receive("open").batchId();
		ids.addAll(sendAsBefore("not", "ticked"));
		this.database.query("select pgque.send_after('q', 't', 'delayed', interval '1 millisecond')");
		this.database.query("select pgque.send_idem('q', 't', 'once', 'key', interval '1 day')");
		ids.add(ids.get(6) + 1);

		upgrade();

		assertThat(
				this.database.query("select deduped from pgque.send_idem('q', 't', 'once', 'key', interval '1 day')"))
			.containsExactly(Map.of("deduped", true));
		assertThat(this.client.settle(open, null, List.of()).settled()).isTrue();
		assertThat(this.client.moveDueRetries()).isOne();
		await().until(() -> this.client.deliverDelayed() == 1);
		assertThat(this.client.redeliverAll("q").replayed()).isOne();
		this.client.moveDueRetries();
		this.client.tickAll();
		// The retry that was moved drew an id too.
		ids.add(ids.get(7) + 2);
		assertThat(drain("settled"))
			.containsExactlyInAnyOrderElementsOf(union(ids.subList(5, 9), ids.get(1), ids.get(2)));
		assertThat(drain("open")).containsExactlyElementsOf(ids.subList(5, 9));
		assertThat(drain("late")).containsExactlyElementsOf(ids);
	}

	/**
	 * Send as applications of all releases can.
	 */
	private List<Long> sendAsBefore(String... payloads) {
		return this.database.values(Long.class, "select unnest(pgque.send_batch('q', 't', ?::text[]))",
				"{" + String.join(",", payloads) + "}");
	}

	/**
	 * Other instances send and receive meanwhile.
	 */
	@ParameterizedTest
	@MethodSource("releases")
	void nothingIsLostOrDoneTwiceMeanwhile(String release) {
		install(release);
		this.client.createQueue("q");
		this.client.subscribe("q", "c");
		AtomicBoolean upgraded = new AtomicBoolean();
		ConcurrentLinkedQueue<Long> received = new ConcurrentLinkedQueue<>();
		CompletableFuture<List<Long>> sender = CompletableFuture.supplyAsync(() -> {
			List<Long> sent = new ArrayList<>();
			while (!upgraded.get() || sent.size() < 100) {
				sent.addAll(sendAsBefore("x", "y"));
			}
			return sent;
		}, THREADS);
		CompletableFuture<Void> consumer = CompletableFuture.runAsync(() -> {
			while (!sender.isDone()) {
				this.client.tickAll();
				received.addAll(drain("c"));
			}
		}, THREADS);
		await().until(() -> received.size() > 10 || consumer.isDone());
		upgrade();
		upgraded.set(true);
		List<Long> sent = sender.join();
		consumer.join();
		this.client.tickAll();
		received.addAll(drain("c"));
		assertThat(received).containsExactlyElementsOf(sent);
	}

	/**
	 * As a transactional container does whose handlers take long.
	 */
	@ParameterizedTest
	@MethodSource("releases")
	void transactionThatHasReceivedKeepsNobodyElseWaiting(String release) throws Exception {
		install(release);
		this.client.createQueue("q");
		this.client.subscribe("q", "slow");
		this.client.subscribe("q", "quick");
		sendAsBefore("x", "y");
		this.client.tickAll();
		CompletableFuture<Void> upgrade;
		try (Connection slow = this.database.connect(); Statement statement = slow.createStatement()) {
			slow.setAutoCommit(false);
			statement.execute("select * from pgque.receive_batch('q', 'slow', 10, 1000)");
			upgrade = CompletableFuture.runAsync(this::upgrade, THREADS);
			await().until(() -> this.database.value(Integer.class,
					"select count(*)::int from pg_stat_activity where query like '%share row exclusive%'"
							+ " and pid <> pg_backend_pid() and state = 'active'") > 0);
			for (int i = 0; i < 10; i++) {
				long begin = System.nanoTime();
				assertThat(this.client.settle(receive("quick").batchId(), null, List.of()).settled()).isTrue();
				assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(3));
				sendAsBefore("z");
				this.client.tickAll();
			}
			assertThat(upgrade).isNotDone();
			slow.commit();
		}
		upgrade.join();
		assertThat(this.client.version()).isEqualTo(PgqueSchema.RELEASE);
	}

	@ParameterizedTest
	@MethodSource("releases")
	void senderAppendsByItselfOnceItsTableIsNew(String release) {
		install(release);
		this.client.createQueue("q");
		this.client.subscribe("q", "c");
		sendAsBefore("before");
		upgrade();
		StatementCounter counter = new StatementCounter(this.database.dataSource());
		for (int slot = 1; slot <= 3; slot++) {
			assertThat(isAppended(counter)).isEqualTo(slot > 1);
			sendAsBefore("of an instance of that release");
			this.client.tickAll();
			drain("c");
			this.database.update("update pgque.queue set queue_switch_time = now() - interval '1 day'");
			this.database.query("select pgque.maint_rotate_tables_step1('q')");
			this.database.query("select pgque.maint_rotate_tables_step2()");
			assertThat(this.database.value(Integer.class, "select queue_cur_table from pgque.queue"))
				.isEqualTo(slot % 3);
		}
		assertThat(isAppended(counter)).isTrue();
		this.client.tickAll();
		assertThat(drain("c")).hasSize(2);
	}

	/**
	 * Send twice with a new client.
	 * @return whether it appended the second event without the engine's function
	 */
	private boolean isAppended(StatementCounter counter) {
		PgqueClient sender = new PgqueClient(counter);
		sender.send("q", "t", "x", EventExtras.NONE);
		sender.send("q", "t", "y", EventExtras.NONE);
		List<String> statements = counter.statements();
		return statements.get(statements.size() - 1).startsWith("insert into pgque.event_");
	}

	private void sendAsBefore(String data) {
		this.database.query("select pgque.insert_event('q', 't', ?, null, null, null, null)", data);
	}

	private void install(String release) {
		new PgqueSchemaMigrator(this.database.dataSource(), this.database.dataSource(),
				new Migrations(getClass().getClassLoader(), "classpath:io/pgque/releases/" + release),
				Release.parse(release))
			.migrate();
		assertThat(this.client.version()).isEqualTo(release);
	}

	private void upgrade() {
		new PgqueSchemaMigrator(this.database.dataSource(), this.database.dataSource()).migrate();
		assertThat(this.client.version()).isEqualTo(PgqueSchema.RELEASE);
	}

	private Page receive(String consumer) {
		return this.client.receiveBatch("q", consumer, 1000, 1_000_000);
	}

	private List<Long> drain(String consumer) {
		List<Long> ids = new ArrayList<>();
		for (Page page = receive(consumer); !page.isEmpty(); page = receive(consumer)) {
			List<Long> read = page.rows().stream().map(EventRow::id).toList();
			ids.addAll(read);
			// With more to come, only the part of the batch that was read.
			Long upTo = page.more() ? read.get(read.size() - 1) : null;
			assertThat(this.client.settle(page.batchId(), upTo, List.of()).settled()).isTrue();
		}
		return ids;
	}

	private static Set<Long> union(List<Long> ids, Long... others) {
		Set<Long> union = new LinkedHashSet<>(ids);
		union.addAll(List.of(others));
		return union;
	}

}
