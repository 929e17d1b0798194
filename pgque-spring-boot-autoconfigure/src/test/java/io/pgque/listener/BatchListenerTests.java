package io.pgque.listener;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

import io.pgque.core.PgqueMessage;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/**
 * Tests for listeners that take several messages at a time.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class BatchListenerTests {

	private final TestDatabase database;

	private final List<List<String>> handed = new CopyOnWriteArrayList<>();

	private ListenerFixture fixture;

	BatchListenerTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database);
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	private static List<String> payloads(PgqueBatch batch) {
		return batch.messages().stream().map(PgqueMessage::payload).toList();
	}

	@Test
	void largeBatchComesPageByPageAndIsSettledOnce() {
		this.fixture.properties.setPageSize(100);
		var container = this.fixture.batchContainer("pages", (batch) -> this.handed.add(payloads(batch)));
		this.fixture.send("pages", 250);
		container.start();
		await().until(() -> this.fixture.isDrained("pages"));
		assertThat(this.handed).extracting(List::size).containsExactly(100, 100, 50);
		assertThat(this.handed.stream().flatMap(List::stream).map(Integer::valueOf)).isSorted().hasSize(250);
		await().untilAsserted(() -> assertThat(container.getCounters())
			.extracting(ListenerCounters::handled, ListenerCounters::batchesSettled)
			.containsExactly(250L, 1L));
	}

	@Test
	void eachMessageHasAnOutcomeOfItsOwn() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.deadLetter();
		var container = this.fixture.batchContainer("outcomes", (batch) -> {
			List<PgqueMessage> messages = batch.messages();
			// Out of order, as workers would do it.
			batch.failed(messages.get(4), new IllegalStateException("no 5"));
			batch.skip(messages.get(3));
			batch.deadLetter(messages.get(2), "no \0 3");
			batch.retry(messages.get(1), Duration.ofHours(1), "later");
			batch.retry(messages.get(0), Duration.ofHours(1), "replaced");
			batch.done(messages.get(0));
		});
		this.fixture.send("outcomes", 6);
		container.start();
		await().until(() -> this.fixture.isDrained("outcomes"));
		await().untilAsserted(() -> assertThat(container.getCounters())
			.extracting(ListenerCounters::handled, ListenerCounters::skipped, ListenerCounters::retried,
					ListenerCounters::deadLettered, ListenerCounters::batchesSettled)
			.containsExactly(2L, 1L, 1L, 2L, 1L));
		assertThat(this.fixture.client.deadLetters("outcomes", 10)).extracting((row) -> row.reason())
			.containsExactlyInAnyOrder("no  3", "java.lang.IllegalStateException: no 5");
	}

	@Test
	void outcomesOfAListenerThatThrowsStandAndTheOthersAreRetried(CapturedOutput output) {
		AtomicInteger calls = new AtomicInteger();
		var container = this.fixture.batchContainer("throws", (batch) -> {
			this.handed.add(payloads(batch));
			if (calls.incrementAndGet() == 1) {
				batch.done(batch.messages().get(3));
				batch.done(batch.messages().get(1));
				throw new ClassCastException("hopeless, but whose fault is it?");
			}
		});
		this.fixture.send("throws", 5);
		container.start();
		await().until(() -> this.fixture.pendingRetries("throws") == 3);
		this.fixture.retryNow("throws");
		await().until(() -> container.getCounters().handled() == 5);
		assertThat(this.handed).containsExactly(List.of("1", "2", "3", "4", "5"), List.of("1", "3", "5"));
		assertThat(this.fixture.deadLetters("throws")).isZero();
		assertThat(output).containsOnlyOnce("without telling which of them is to blame")
			.containsOnlyOnce("failed, it comes again in");
	}

	@Test
	void namedMessageFailsAloneThoseBeforeAreDoneAndThoseBehindComeAtOnce() {
		var container = this.fixture.batchContainer("named", (batch) -> {
			this.handed.add(payloads(batch));
			int index = payloads(batch).indexOf("3");
			if (index >= 0) {
				throw new BatchListenerFailedException(new IllegalStateException("no 3"), index);
			}
		});
		this.fixture.client.setQueueConfig("named", "max_retries", "1");
		this.fixture.send("named", 5);
		container.start();
		await().until(() -> this.fixture.pendingRetries("named") == 1);
		assertThat(this.handed).containsExactly(List.of("1", "2", "3", "4", "5"), List.of("4", "5"));
		this.fixture.retryNow("named");
		await().until(() -> this.fixture.deadLetters("named") == 1);
		assertThat(this.fixture.client.deadLetters("named", 1).get(0).reason())
			.isEqualTo("java.lang.IllegalStateException: no 3");
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(4));
	}

	@Test
	void firstMessageThatFailsForEverEndsAsDeadLetterAndTheRestIsDelivered() {
		var container = this.fixture.batchContainer("first", (batch) -> {
			this.handed.add(payloads(batch));
			if ("1".equals(batch.messages().get(0).payload())) {
				throw new BatchListenerFailedException(new IllegalStateException(), batch.messages().get(0));
			}
		});
		this.fixture.client.setQueueConfig("first", "max_retries", "1");
		this.fixture.send("first", 3);
		container.start();
		await().until(() -> this.fixture.pendingRetries("first") == 1);
		this.fixture.retryNow("first");
		await().until(() -> this.fixture.deadLetters("first") == 1);
		assertThat(this.handed).containsExactly(List.of("1", "2", "3"), List.of("2", "3"), List.of("1"));
	}

	@Test
	void positionThatIsNoneRetriesAll() {
		var container = this.fixture.batchContainer("position", (batch) -> {
			throw new BatchListenerFailedException(new IllegalStateException(), 7);
		});
		this.fixture.send("position", 3);
		container.start();
		await().until(() -> this.fixture.pendingRetries("position") == 3);
	}

	@Test
	void outageLeavesTheWholeListAlone() {
		AtomicInteger calls = new AtomicInteger();
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.abortBatch(Duration.ofMillis(1));
		var container = this.fixture.batchContainer("outage", (batch) -> {
			this.handed.add(payloads(batch));
			if (calls.incrementAndGet() < 3) {
				throw new IllegalStateException("down");
			}
		});
		this.fixture.send("outage", 2);
		container.start();
		await().until(() -> this.fixture.isDrained("outage"));
		assertThat(this.handed).hasSize(3).containsOnly(List.of("1", "2"));
		await().untilAsserted(() -> assertThat(container.getCounters())
			.extracting(ListenerCounters::handled, ListenerCounters::retried, ListenerCounters::batchesAborted)
			.containsExactly(2L, 0L, 2L));
	}

	@Test
	void orderHoldsOverListenersOfOneConsumer() {
		List<String> calls = new CopyOnWriteArrayList<>();
		EventRoutes routes = EventRoutes.of(List.of(
				new EventRoutes.Route("several", EventRoutes.Route.Kind.FILTER, Set.of("a"),
						(PgqueBatchListener) (batch) -> calls.add(payloads(batch).toString())),
				new EventRoutes.Route("single", EventRoutes.Route.Kind.FILTER, Set.of("b"),
						(PgqueMessageListener) (message) -> calls.add(message.payload()))));
		var container = this.fixture.container("mixed", routes, (created) -> {
		});
		for (String message : "a1 a2 b3 a4 c5 b6 b7 a8 a9".split(" ")) {
			this.fixture.client.send("mixed", message.substring(0, 1), message.substring(1),
					io.pgque.client.EventExtras.NONE);
		}
		this.fixture.tick("mixed");
		container.start();
		await().until(() -> this.fixture.isDrained("mixed"));
		assertThat(calls).containsExactly("[1, 2]", "3", "[4]", "6", "7", "[8, 9]");
		await().untilAsserted(() -> assertThat(container.getCounters().skipped()).isOne());
	}

	@Test
	void strangeMessagesAndLateOutcomesAreRefused() {
		List<PgqueBatch> batches = new CopyOnWriteArrayList<>();
		List<Throwable> refused = new CopyOnWriteArrayList<>();
		var container = this.fixture.batchContainer("strange", (batch) -> {
			PgqueMessage own = batch.messages().get(0);
			PgqueMessage strange = new PgqueMessage(own.id() + 1000, own.batchId(), own.queue(), own.consumer(), null,
					null, null, own.createdAt(), null, null, null, null, java.util.Map.of());
			try {
				batch.done(strange);
			}
			catch (IllegalArgumentException ex) {
				refused.add(ex);
			}
			batches.add(batch);
		});
		this.fixture.send("strange", 1);
		container.start();
		await().until(() -> this.fixture.isDrained("strange"));
		assertThat(refused).singleElement()
			.satisfies((ex) -> assertThat(ex).hasMessageContaining("none of those that the handler was given"));
		PgqueBatch late = batches.get(0);
		assertThatIllegalStateException().isThrownBy(() -> late.done(late.messages().get(0)))
			.withMessageContaining("The handler has returned");
		assertThatIllegalStateException().isThrownBy(late::acknowledge);
		assertThatIllegalArgumentException()
			.isThrownBy(() -> late.retry(late.messages().get(0), Duration.ofMillis(-1), null));
	}

	@Test
	void stoppedContainerSettlesTheListsThatAreDone() {
		this.fixture.properties.setPageSize(2);
		List<DefaultPgqueMessageListenerContainer> self = new ArrayList<>();
		self.add(this.fixture.batchContainer("stop", (batch) -> {
			this.handed.add(payloads(batch));
			if (this.handed.size() == 2) {
				self.get(0).stop();
			}
		}));
		this.fixture.send("stop", 6);
		self.get(0).start();
		await().until(() -> !self.get(0).isRunning());
		assertThat(this.handed).containsExactly(List.of("1", "2"), List.of("3", "4"));
		self.get(0).start();
		await().until(() -> this.fixture.isDrained("stop"));
		assertThat(this.handed).containsExactly(List.of("1", "2"), List.of("3", "4"), List.of("5", "6"));
		assertThat(self.get(0).getCounters().retried()).isZero();
	}

}
