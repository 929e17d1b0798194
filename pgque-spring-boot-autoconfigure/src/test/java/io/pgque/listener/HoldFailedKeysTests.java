package io.pgque.listener;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueMessage;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for keys whose later messages wait while an earlier one is being retried.
 */
@PgqueDatabase
class HoldFailedKeysTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	/**
	 * Payloads of which the next attempt fails.
	 */
	private final Set<String> failing = ConcurrentHashMap.newKeySet();

	/**
	 * What was handed over, with the attempt.
	 */
	private final List<String> calls = new CopyOnWriteArrayList<>();

	HoldFailedKeysTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database, this.database.pool(8));
		this.fixture.properties.setHoldFailedKeys(true);
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@ParameterizedTest
	@EnumSource
	void laterMessageOfAFailedKeyWaitsAndOtherKeysProceed(OrderedMode mode) {
		String queue = "waits_" + mode;
		var container = container(queue, mode);
		this.failing.add("A1");
		send(queue, "A1", "B2", "A3", "B4");
		container.start();
		await().until(() -> this.fixture.isDrained(queue));
		assertThat(this.calls).contains("A1 1", "B2 1", "B4 1").doesNotContain("A3 1");
		assertThat(this.fixture.pendingRetries(queue)).isEqualTo(2);
		assertThat(heldKeys(queue)).containsExactly("A: 1 waits");
		this.calls.clear();
		this.fixture.retryNow(queue);
		await().until(() -> this.calls.size() >= 2);
		assertThat(this.calls).as("held back is not failed").containsExactly("A1 2", "A3 1");
		await().until(() -> this.fixture.isDrained(queue));
		await()
			.untilAsserted(() -> assertThat(container.getCounters())
				.extracting(ListenerCounters::handled, ListenerCounters::retried, ListenerCounters::deadLettered,
						ListenerCounters::heldBack, ListenerCounters::batchesAborted)
				.containsExactly(4L, 1L, 0L, 1L, 0L));
		assertThat(heldKeys(queue)).isEmpty();
		assertThat(this.fixture.pendingRetries(queue)).isZero();
	}

	@ParameterizedTest
	@EnumSource
	void laterMessageInAnotherBatchWaitsAsLongAsTheFailedOne(OrderedMode mode) {
		String queue = "batches_" + mode;
		var container = container(queue, mode);
		this.failing.add("A1");
		send(queue, "A1");
		container.start();
		await().until(() -> this.fixture.pendingRetries(queue) == 1);
		send(queue, "A2", "B3");
		await().until(() -> this.fixture.pendingRetries(queue) == 2);
		assertThat(this.database.value(Integer.class,
				"select count(distinct ev_retry_after)::int from pgque.retry_queue join pgque.queue on queue_id = ev_queue"
						+ " where queue_name = ?",
				queue))
			.as("they come together")
			.isOne();
		this.failing.add("A1");
		this.fixture.retryNow(queue);
		await().until(() -> this.calls.contains("A1 2") && this.fixture.pendingRetries(queue) == 2);
		send(queue, "A4");
		await().until(() -> this.fixture.pendingRetries(queue) == 3);
		this.fixture.retryNow(queue);
		await().until(() -> this.calls.size() >= 6);
		assertThat(this.calls).containsExactlyInAnyOrder("A1 1", "B3 1", "A1 2", "A1 3", "A2 1", "A4 1")
			.containsSubsequence("A1 1", "A1 2", "A1 3", "A2 1", "A4 1");
		await().until(() -> heldKeys(queue).isEmpty());
	}

	@Test
	void messageWaitsForOneThatLiesFurtherOnInTheLog() {
		// One event a batch.
		this.fixture.properties.setPageSize(1);
		var container = container("further", OrderedMode.EXCLUSIVE);
		this.failing.add("A1");
		send("further", "A1");
		container.drain();
		send("further", "A2");
		this.fixture.retryNow("further");
		container.drain();
		assertThat(this.calls).containsExactly("A1 1", "A1 2");
		assertThat(this.database.value(Boolean.class, "select ev_retry_after <= now() from pgque.retry_queue"))
			.as("due at once")
			.isTrue();
		this.fixture.client.moveDueRetries();
		this.fixture.tick("further");
		container.drain();
		assertThat(this.calls).containsExactly("A1 1", "A1 2", "A2 1");
		assertThat(heldKeys("further")).isEmpty();
	}

	@Test
	void messageOfALowerIdThatCommittedLaterComesLater() throws Exception {
		var container = container("late", OrderedMode.EXCLUSIVE);
		this.failing.add("A2");
		try (var connection = this.database.connect()) {
			connection.setAutoCommit(false);
			try (var statement = connection.createStatement()) {
				statement.execute("select pgque.insert_event('late', 't', 'A1', 'A', null, null, null)");
			}
			send("late", "A2");
			container.drain();
			connection.commit();
		}
		this.fixture.tick("late");
		container.drain();
		this.fixture.retryNow("late");
		container.drain();
		this.fixture.client.moveDueRetries();
		this.fixture.tick("late");
		container.drain();
		assertThat(this.calls).containsExactly("A2 1", "A2 2", "A1 1");
		assertThat(heldKeys("late")).isEmpty();
	}

	@ParameterizedTest
	@EnumSource
	void laterMessagesProceedInOrderBehindADeadLetter(OrderedMode mode) {
		String queue = "dead_" + mode;
		var container = container(queue, mode);
		this.fixture.client.setQueueConfig(queue, "max_retries", "1");
		this.failing.add("A1");
		send(queue, "A1", "A2", "A3");
		container.start();
		await().until(() -> this.fixture.pendingRetries(queue) == 3);
		this.failing.add("A1");
		this.fixture.retryNow(queue);
		await().until(() -> this.fixture.deadLetters(queue) == 1);
		// Behind the last attempt they are due at once.
		await().until(() -> {
			this.fixture.client.moveDueRetries();
			this.fixture.tick(queue);
			return this.calls.contains("A3 1");
		});
		assertThat(this.calls.stream().distinct()).containsExactly("A1 1", "A1 2", "A2 1", "A3 1");
		await().until(() -> heldKeys(queue).isEmpty());
		assertThat(this.fixture.deadLetters(queue)).isOne();
	}

	@Test
	void rejectedAndSkippedMessagesHoldNothingBack() {
		this.fixture.errorHandler = (failure, message, context) -> message.payload().equals("A1")
				? FailureAction.deadLetter() : FailureAction.skip();
		var container = container("through", OrderedMode.EXCLUSIVE);
		this.failing.addAll(List.of("A1", "A2"));
		send("through", "A1", "A2", "A3");
		container.drain();
		assertThat(this.calls).containsExactly("A1 1", "A2 1", "A3 1");
		assertThat(heldKeys("through")).isEmpty();
	}

	@ParameterizedTest
	@EnumSource(names = { "EXCLUSIVE", "PARTITIONED" })
	void anotherInstanceKeepsTheOrder(OrderedMode mode) {
		String queue = "taken_" + mode;
		var first = container(queue, mode);
		this.failing.add("A1");
		send(queue, "A1", "A2");
		first.start();
		await().until(() -> this.fixture.pendingRetries(queue) == 2);
		first.stop();
		var second = container(queue, mode);
		send(queue, "A3", "B4");
		second.start();
		await().until(() -> this.fixture.pendingRetries(queue) == 3);
		this.fixture.retryNow(queue);
		await().until(() -> this.calls.size() == 5);
		assertThat(this.calls).containsExactlyInAnyOrder("A1 1", "B4 1", "A1 2", "A2 1", "A3 1")
			.containsSubsequence("A1 1", "A1 2", "A2 1", "A3 1");
	}

	@Test
	void instanceThatLostItsBatchHoldsNothingBack() {
		this.fixture.properties.setLeaseDuration(Duration.ofMillis(1500));
		ContainerLeaseTests.Outage outage = new ContainerLeaseTests.Outage(this.database);
		CountDownLatch mayLeave = new CountDownLatch(1);
		List<String> lost = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("lost", ListenerFixture.routes((message) -> {
			lost.add(message.payload());
			if (message.payload().equals("A1")) {
				throw new IllegalStateException("no");
			}
			mayLeave.await();
		}), (container) -> container.setInstanceHeartbeat(new InstanceHeartbeat(new PgqueClient(outage))));
		send("lost", "A1", "B2", "A3");
		first.start();
		await().until(() -> lost.equals(List.of("A1", "B2")));
		outage.begin();
		var second = container("lost", OrderedMode.EXCLUSIVE);
		second.start();
		await().until(() -> this.fixture.isDrained("lost"));
		outage.end();
		mayLeave.countDown();
		await().until(() -> first.getCounters().staleSettles() == 1 || first.isStandby());
		assertThat(this.calls).containsExactly("A1 1", "B2 1", "A3 1");
		assertThat(lost).doesNotContain("A3");
		assertThat(heldKeys("lost")).isEmpty();
		assertThat(this.fixture.pendingRetries("lost")).isZero();
	}

	@Test
	void orderOutlastsAChangeOfTheNumberOfSlots() {
		var before = container("slots", OrderedMode.PARTITIONED);
		before.start();
		this.failing.add("A1");
		send("slots", "A1", "A2", "B3");
		await().until(() -> this.fixture.pendingRetries("slots") == 2);
		await().until(() -> {
			this.fixture.tick("slots");
			return this.database.value(Boolean.class, "select pgque.change_partitions('slots', 'consumer', 2)");
		});
		before.stop();
		this.fixture.properties.setPartitions(2);
		var after = this.fixture.container("slots", this::handle);
		after.start();
		send("slots", "A4", "B5");
		await().until(() -> this.fixture.pendingRetries("slots") == 3);
		this.fixture.retryNow("slots");
		await().until(() -> this.calls.size() == 6);
		assertThat(this.calls).containsExactlyInAnyOrder("A1 1", "B3 1", "B5 1", "A1 2", "A2 1", "A4 1")
			.containsSubsequence("A1 1", "A1 2", "A2 1", "A4 1");
	}

	@Test
	void messagesWithoutAKeyNeverWait() {
		var container = container("keyless", OrderedMode.EXCLUSIVE);
		this.failing.add("1");
		send("keyless", "1", "2");
		container.drain();
		send("keyless", "3");
		container.drain();
		assertThat(this.calls).containsExactly("1 1", "2 1", "3 1");
	}

	@Test
	void manyThatWaitAreNoReasonToPauseAndComeInOrder() {
		this.fixture.properties.setFailureBrakeThreshold(2);
		var container = container("many", OrderedMode.EXCLUSIVE);
		this.fixture.client.setQueueConfig("many", "max_retries", "1");
		this.failing.add("A1");
		List<String> payloads = IntStream.rangeClosed(1, 3000).mapToObj((n) -> "A" + n).toList();
		send("many", payloads.toArray(String[]::new));
		container.drain();
		assertThat(this.calls).containsExactly("A1 1");
		assertThat(this.fixture.pendingRetries("many")).isEqualTo(3000);
		this.fixture.retryNow("many");
		container.drain();
		assertThat(this.calls.subList(1, this.calls.size())).startsWith("A1 2", "A2 1", "A3 1")
			.containsExactlyElementsOf(
					payloads.stream().map((payload) -> payload.equals("A1") ? "A1 2" : payload + " 1").toList());
		assertThat(container.getCounters().batchesAborted()).isZero();
		assertThat(heldKeys("many")).isEmpty();
	}

	@Test
	void listsAreHandedOverWithoutWhatHasToWait() {
		List<List<String>> lists = new ArrayList<>();
		var container = this.fixture.batchContainer("lists", (batch) -> {
			lists.add(batch.messages().stream().map(PgqueMessage::payload).toList());
			for (PgqueMessage message : batch.messages()) {
				if (this.failing.remove(message.payload())) {
					throw new BatchListenerFailedException(new IllegalStateException("no"), message);
				}
			}
		});
		this.failing.add("A2");
		send("lists", "B1", "A2", "A3", "B4", "A5");
		container.drain();
		send("lists", "A6", "B7");
		container.drain();
		this.fixture.retryNow("lists");
		container.drain();
		assertThat(lists).containsExactly(List.of("B1", "A2", "A3", "B4", "A5"), List.of("B4"), List.of("B7"),
				List.of("A2", "A3", "A5", "A6"));
		assertThat(heldKeys("lists")).isEmpty();
	}

	@Test
	void messageThatIsNackedByHandHoldsLaterOnesBack() {
		var container = this.fixture.manualContainer("manual", (message, acknowledgment) -> {
			this.calls.add(message.payload() + " " + message.deliveryAttempt());
			if (this.failing.remove(message.payload())) {
				acknowledgment.nack(message, Duration.ofHours(1), "later");
			}
			else if (!message.payload().equals("A3")) {
				acknowledgment.acknowledge();
			}
		});
		this.failing.add("A1");
		send("manual", "A1", "A2", "A3", "B4");
		container.drain();
		this.fixture.retryNow("manual");
		this.calls.add("again");
		send("manual", "A5");
		container.drain();
		assertThat(this.calls).containsExactly("A1 1", "B4 1", "again", "A1 2", "A2 1", "A3 1", "A5 1");
		assertThat(heldKeys("manual")).isEmpty();
	}

	@Test
	void whatIsLeftOverWhileTheOptionIsOffHoldsNothingBackLater() {
		var holding = container("on_off", OrderedMode.EXCLUSIVE);
		this.fixture.properties.setHoldFailedKeys(false);
		var free = container("on_off", OrderedMode.EXCLUSIVE);
		this.failing.add("A1");
		send("on_off", "A1", "A2");
		run(holding);
		assertThat(this.calls).containsExactly("A1 1");
		this.failing.add("A1");
		this.fixture.retryNow("on_off");
		send("on_off", "A3");
		run(free);
		assertThat(this.calls).containsExactly("A1 1", "A1 2", "A2 1", "A3 1");
		assertThat(heldKeys("on_off")).containsExactly("A: 1 waits");
		send("on_off", "A4");
		run(holding);
		assertThat(this.calls).as("A1 is still to come").hasSize(4);
		assertThat(heldKeys("on_off")).containsExactly("A: 1 waits");
		this.fixture.retryNow("on_off");
		run(free);
		assertThat(this.calls).endsWith("A1 3", "A4 1");
		send("on_off", "A5");
		run(holding);
		assertThat(this.calls).endsWith("A5 1");
		assertThat(heldKeys("on_off")).isEmpty();
	}

	private void run(DefaultPgqueMessageListenerContainer container) {
		container.start();
		await().until(() -> this.fixture.isDrained(container.getQueue()));
		container.stop();
	}

	@Test
	void modeWithoutOrderIsRefused() {
		this.fixture.properties.setMode(ListenerMode.COOPERATIVE);
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> this.fixture.container("refused", (message) -> {
			}))
			.withMessageContaining("hold back later messages of a failed key")
			.withMessageContaining("mode 'cooperative'")
			.satisfies((failure) -> assertThat(failure.getRemedy()).contains("pgque.listener.hold-failed-keys"));
	}

	private DefaultPgqueMessageListenerContainer container(String queue, OrderedMode mode) {
		mode.apply(this.fixture.properties);
		return this.fixture.container(queue, ListenerFixture.routes(this::handle),
				(container) -> container.setTransactionManager(mode.transactionManager(this.fixture.pool)));
	}

	private void handle(PgqueMessage message) {
		this.calls.add(message.payload() + " " + message.deliveryAttempt());
		if (this.failing.remove(message.payload())) {
			throw new IllegalStateException("no");
		}
	}

	/**
	 * Send messages in one transaction each and tick: letters are keys, a number alone
	 * has none.
	 */
	private void send(String queue, String... payloads) {
		List<String> types = new ArrayList<>();
		List<@Nullable String> texts = new ArrayList<>();
		List<EventExtras> extras = new ArrayList<>();
		for (String payload : payloads) {
			types.add("t");
			texts.add(payload);
			String key = payload.replaceAll("\\d", "");
			extras.add(new EventExtras(key.isEmpty() ? null : key, null, null, null));
		}
		this.fixture.client.sendBatch(queue, types, texts, extras);
		this.fixture.tick(queue);
	}

	private List<String> heldKeys(String queue) {
		return this.database.values(String.class,
				"select key || ': ' || waiting || ' waits' from pgque.held_keys(?) order by 1", queue);
	}

}
