package io.pgque.listener;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.client.EventExtras;
import io.pgque.core.PgqueMessage;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * The order that is promised, with handlers that fail at random: first deliveries come in
 * the order of the ids, within a key where handlers run at the same time; only a retry
 * comes later than what was sent after it, and everything is handled once.
 */
@PgqueDatabase
class RandomFailureOrderTests {

	private static final int KEYS = 7;

	private final TestDatabase database;

	RandomFailureOrderTests(TestDatabase database) {
		this.database = database;
	}

	@ParameterizedTest
	@CsvSource({ "1, EXCLUSIVE, 1", "2, EXCLUSIVE, 1", "3, EXCLUSIVE, 4", "4, EXCLUSIVE, 4", "5, PARTITIONED, 3" })
	void onlyRetriesBreakIt(long seed, ListenerMode mode, int concurrency) throws Exception {
		Random random = new Random(seed);
		String queue = "random_" + seed;
		try (ListenerFixture fixture = new ListenerFixture(this.database)) {
			fixture.properties.setMode(mode);
			fixture.properties.setConcurrency(concurrency);
			fixture.properties.setPartitions(6);
			fixture.properties.setPageSize(1 + random.nextInt(20));
			fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ZERO);
			Map<Long, Integer> failures = new ConcurrentHashMap<>();
			List<PgqueMessage> calls = new CopyOnWriteArrayList<>();
			List<Long> handled = new CopyOnWriteArrayList<>();
			var container = fixture.container(queue, (message) -> {
				calls.add(message);
				if (failures.getOrDefault(message.id(), 0) >= message.deliveryAttempt()) {
					throw new IllegalStateException("attempt " + message.deliveryAttempt());
				}
				handled.add(message.id());
			});
			container.start();
			List<Long> sent = new ArrayList<>();
			while (sent.size() < 300) {
				for (int i = random.nextInt(30); i >= 0; i--) {
					long id = fixture.client.send(queue, "t", "x",
							new EventExtras("key " + random.nextInt(KEYS), null, null, null));
					sent.add(id);
				}
				// Before they are visible.
				sent.stream()
					.filter((id) -> !failures.containsKey(id))
					.forEach((id) -> failures.put(id, Math.max(0, random.nextInt(8) - 5)));
				fixture.tick(queue);
				fixture.client.moveDueRetries();
			}
			await().until(() -> {
				fixture.client.moveDueRetries();
				fixture.tick(queue);
				return handled.size() == sent.size();
			});
			assertThat(handled).containsExactlyInAnyOrderElementsOf(sent);
			container.stop();
			check(calls, failures, mode == ListenerMode.EXCLUSIVE && concurrency == 1);
		}
	}

	private static void check(List<PgqueMessage> calls, Map<Long, Integer> failures, boolean total) {
		Map<String, Long> last = new HashMap<>();
		Map<Long, Integer> attempts = new HashMap<>();
		for (PgqueMessage message : calls) {
			assertThat(message.deliveryAttempt()).as("attempt of " + message.id())
				.isEqualTo(attempts.merge(message.id(), 1, Integer::sum));
			if (message.deliveryAttempt() == 1) {
				Long before = last.put(total ? "" : String.valueOf(message.key()), message.id());
				assertThat(before == null || before < message.id()).as("%s came after %s", message.id(), before)
					.isTrue();
			}
		}
		failures.forEach((id, times) -> assertThat(attempts).containsEntry(id, times + 1));
	}

}
