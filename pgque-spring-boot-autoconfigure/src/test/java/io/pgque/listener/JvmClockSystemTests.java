package io.pgque.listener;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import io.pgque.client.PgqueClient;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Three processes, whose clocks are five minutes ahead, five minutes behind and right,
 * share a consumer with a lease of two seconds: nobody takes another for dead who isn't,
 * and whoever is dead is found out in time.
 */
@PgqueDatabase
@Tag("system")
class JvmClockSystemTests {

	private static final int MESSAGES = 1000;

	private final TestDatabase database;

	private final List<InstanceProcess> processes = new ArrayList<>();

	@TempDir
	private Path logs;

	private String queue;

	JvmClockSystemTests(TestDatabase database) {
		this.database = database;
	}

	@AfterEach
	void killAll() {
		this.processes.forEach(InstanceProcess::close);
	}

	private static ConditionFactory await() {
		return Awaitility.await().atMost(Duration.ofSeconds(30)).pollInterval(Duration.ofMillis(20));
	}

	@ParameterizedTest
	@EnumSource
	void wrongClocksOfInstancesDoNotMatter(ListenerMode mode) throws Exception {
		this.queue = "clocks_" + mode.name().toLowerCase(Locale.ROOT);
		this.database.execute(
				"""
						create table if not exists handling (
						    hno bigint generated always as identity primary key, event bigint not null, key text,
						    instance text not null, started timestamptz not null default clock_timestamp(), finished timestamptz);
						truncate handling""");
		start("ahead", mode, "+5m");
		start("behind", mode, "-5m");
		start("right", mode, "+0");
		await().atMost(Duration.ofMinutes(2))
			.untilAsserted(() -> assertThat(this.database.value(Integer.class,
					"select count(*)::int from pg_stat_activity where datname = current_database()"
							+ " and (query like 'listen %' or query = 'show transaction_read_only')"))
				.as(this::outputs)
				.isEqualTo(3));
		PgqueClient client = new PgqueClient(this.database.pool(2));
		List<String> payloads = IntStream.range(0, 50).mapToObj(Integer::toString).toList();
		for (int sent = 0; sent < MESSAGES; sent += payloads.size()) {
			client.sendBatch(this.queue, "type", payloads);
			client.tick(List.of(this.queue));
			int target = sent + payloads.size() / 2;
			await().until(() -> handled() >= target);
		}
		await().until(() -> handled() == MESSAGES);
		// Beyond any lease, in which nobody may lose what it has.
		await().during(InstanceMain.LEASE.multipliedBy(2)).until(() -> true);
		assertThat(this.database.value(Integer.class, "select count(*)::int from handling")).isEqualTo(MESSAGES);
		assertThat(this.processes).extracting(InstanceProcess::output)
			.allMatch((output) -> !output.contains("is lost: ") && !output.contains("no longer open"));
		InstanceProcess active = active();
		active.kill();
		long killed = System.nanoTime();
		client.sendBatch(this.queue, "type", payloads);
		client.tick(List.of(this.queue));
		await().until(() -> handled() == MESSAGES + payloads.size());
		assertThat(Duration.ofNanos(System.nanoTime() - killed)).isLessThan(InstanceMain.LEASE.multipliedBy(4));
	}

	/**
	 * The clock that waits are measured with stays as it is; without that setting they
	 * spin.
	 */
	private void start(String name, ListenerMode mode, String offset) throws IOException {
		this.processes.add(InstanceProcess.start(this.database, this.queue, mode,
				(mode == ListenerMode.EXCLUSIVE) ? 1 : 2, false, name, this.logs, Map.of("LD_PRELOAD", library(),
						"FAKETIME", offset, "FAKETIME_DONT_FAKE_MONOTONIC", "1", "FAKETIME_FORCE_MONOTONIC_FIX", "0")));
	}

	/**
	 * Of Debian's package libfaketime.
	 */
	private static String library() throws IOException {
		try (Stream<Path> files = Files.find(Path.of("/usr/lib"), 4,
				(path, attributes) -> path.endsWith("faketime/libfaketime.so.1"))) {
			return files.findFirst()
				.orElseThrow(() -> new IllegalStateException("Install the package libfaketime, as .ci/run does"))
				.toString();
		}
	}

	private String outputs() {
		return this.processes.stream().map(InstanceProcess::output).collect(Collectors.joining("\n"));
	}

	private int handled() {
		return this.database.value(Integer.class,
				"select count(distinct event)::int from handling where finished is not null");
	}

	private InstanceProcess active() {
		String name = this.database.value(String.class, "select instance from handling order by hno desc limit 1");
		return this.processes.stream().filter((process) -> process.name().equals(name)).findFirst().orElseThrow();
	}

}
