package io.pgque.listener;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;

import javax.sql.DataSource;

import io.pgque.client.EventExtras;
import io.pgque.core.PgqueMessage;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

import org.springframework.jdbc.core.JdbcTemplate;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * What happens when keys are held back, whatever fails when: each message ends once, as
 * handled or as a dead letter, and those of a key in the order in which they were sent.
 */
@PgqueDatabase
class KeyOrderPropertyTests {

	private static final int MESSAGES = 200;

	private static final int KEYS = 6;

	private static final int MAX_RETRIES = 2;

	private final TestDatabase database;

	private ListenerFixture fixture;

	KeyOrderPropertyTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database, this.database.pool(10));
		this.fixture.properties.setHoldFailedKeys(true);
		this.fixture.properties.setPageSize(20);
		// It tries without counting the attempt.
		this.fixture.properties.setFailureBrakeThreshold(0);
		this.fixture.properties.setPollInterval(Duration.ofMillis(5));
		this.fixture.properties.setFallbackPollInterval(Duration.ofMillis(5));
		// So that some of these few are parked.
		this.database.execute("create or replace function pgque_internal.hold_window() returns integer language sql"
				+ " immutable parallel safe as 'select 3'");
		this.database.execute("create table if not exists ended (no bigint generated always as identity, queue text,"
				+ " id bigint)");
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	static Stream<Arguments> runs() {
		return Stream.of(OrderedMode.values())
			.flatMap((mode) -> Stream.of(1L, 2L).map((seed) -> Arguments.of(mode, seed)));
	}

	@ParameterizedTest
	@MethodSource("runs")
	void eachKeyEndsInItsOrder(OrderedMode mode, long seed) {
		String queue = "order_" + mode + "_" + seed;
		Random random = new Random(seed);
		mode.apply(this.fixture.properties);
		DefaultPgqueMessageListenerContainer[] instances = { instance(queue, mode, seed), instance(queue, mode, seed) };
		this.fixture.client.setQueueConfig(queue, "max_retries", "" + MAX_RETRIES);
		instances[0].start();
		instances[1].start();
		Map<String, List<Long>> sent = new LinkedHashMap<>();
		for (int i = 0; i < MESSAGES; i++) {
			String key = (random.nextInt(10) == 0) ? null : "key " + random.nextInt(KEYS);
			long id = this.fixture.client.send(queue, "t", "" + i, new EventExtras(key, null, null, null));
			sent.computeIfAbsent((key != null) ? key : "none", (none) -> new ArrayList<>()).add(id);
			if (random.nextInt(5) == 0) {
				this.fixture.tick(queue);
			}
			if (random.nextInt(10) == 0) {
				this.fixture.client.moveDueRetries();
			}
			if (random.nextInt(40) == 0) {
				restart(instances[random.nextInt(2)]);
			}
		}
		await().until(() -> {
			if (random.nextInt(30) == 0) {
				restart(instances[random.nextInt(2)]);
			}
			this.fixture.client.moveDueRetries();
			this.fixture.tick(queue);
			return isThrough(queue);
		});
		Stream.of(instances).forEach(DefaultPgqueMessageListenerContainer::stop);
		assertEndedInOrder(queue, mode, sent);
		assertThat(this.database.values(String.class, "select key from pgque.held_keys(?)", queue)).isEmpty();
	}

	private void restart(DefaultPgqueMessageListenerContainer instance) {
		instance.stop();
		instance.start();
	}

	private boolean isThrough(String queue) {
		int ended = this.database.value(Integer.class, "select count(*)::int from (select id from ended where queue = ?"
				+ " union select ev_id from pgque.dead_letters(?, ?)) e", queue, queue, MESSAGES);
		return ended == MESSAGES && this.fixture.pendingRetries(queue) == 0 && this.fixture.isDrained(queue);
	}

	private void assertEndedInOrder(String queue, OrderedMode mode, Map<String, List<Long>> sent) {
		Map<Long, String> keys = new HashMap<>();
		sent.forEach((key, ids) -> ids.forEach((id) -> keys.put(id, key)));
		List<Long> letters = this.fixture.client.deadLetters(queue, MESSAGES)
			.stream()
			.map((letter) -> letter.event().id())
			.toList();
		assertThat(letters).isNotEmpty().doesNotHaveDuplicates();
		if (isTransactional(mode)) {
			// What their handlers noted was undone with everything else.
			sent.values().forEach((ids) -> ids.removeAll(letters));
		}
		Map<String, List<Long>> ended = new HashMap<>();
		List<Long> all = this.database.values(Long.class, "select id from ended where queue = ? order by no", queue);
		// Those that end behind the one at which a batch has to end come again.
		Stream<Long> once = (mode == OrderedMode.PARALLEL) ? all.stream().distinct() : all.stream();
		once.forEach((id) -> ended.computeIfAbsent(keys.get(id), (key) -> new ArrayList<>()).add(id));
		assertThat(ended.remove("none")).containsExactlyInAnyOrderElementsOf(sent.remove("none"));
		assertThat(ended).containsExactlyInAnyOrderEntriesOf(sent);
	}

	private static boolean isTransactional(OrderedMode mode) {
		return mode == OrderedMode.SAVEPOINTS || mode == OrderedMode.REPEATING;
	}

	private DefaultPgqueMessageListenerContainer instance(String queue, OrderedMode mode, long seed) {
		DataSource pool = this.fixture.pool;
		JdbcTemplate jdbc = new JdbcTemplate(pool);
		Random aborts = new Random(seed);
		this.fixture.errorHandler = (failure, message,
				context) -> (message.deliveryAttempt() <= MAX_RETRIES && aborts.nextInt(10) == 0)
						? FailureAction.abortBatch(Duration.ofMillis(1))
						: FailureAction.retry(Duration.ofMillis(delay(message.id(), message.deliveryAttempt())));
		return this.fixture.container(queue, ListenerFixture.routes((message) -> {
			boolean fails = isFailing(message, seed);
			boolean letter = fails && message.deliveryAttempt() > MAX_RETRIES;
			if (!fails || letter && !isTransactional(mode)) {
				jdbc.update("insert into ended (queue, id) values (?, ?)", queue, message.id());
			}
			if (fails) {
				throw new IllegalStateException("no");
			}
		}), (container) -> container.setTransactionManager(mode.transactionManager(pool)));
	}

	/**
	 * Whether an attempt fails; the same each time that it is made.
	 */
	private static boolean isFailing(PgqueMessage message, long seed) {
		long mixed = (message.id() * 31 + message.deliveryAttempt()) * 31 + seed;
		return new Random(mixed).nextInt(100) < 35;
	}

	private static long delay(long id, int attempt) {
		return new Random(id * 31 + attempt).nextInt(30);
	}

}
