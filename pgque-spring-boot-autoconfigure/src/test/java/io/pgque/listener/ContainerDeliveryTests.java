package io.pgque.listener;

import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.core.PgqueMessage;
import io.pgque.event.BatchAbortedEvent;
import io.pgque.event.MessageDeadLetteredEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.dao.QueryTimeoutException;
import org.springframework.transaction.support.TransactionSynchronizationManager;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for what a container does with messages and their failures.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class ContainerDeliveryTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	ContainerDeliveryTests(TestDatabase database) {
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

	@ParameterizedTest
	@CsvSource({ "105, 100", "600, 500", "2500, 100", "3, 1" })
	void pageSizeNeverLimitsWhatIsSettled(int messages, int pageSize) {
		String queue = "pages_" + messages;
		this.fixture.properties.setPageSize(pageSize);
		List<Long> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container(queue, (message) -> handled.add(message.id()));
		List<Long> sent = this.fixture.send(queue, messages);
		container.start();
		await().until(() -> this.fixture.isDrained(queue));
		container.stop();
		assertThat(handled).isEqualTo(sent);
		await().untilAsserted(() -> assertThat(container.getCounters().batchesSettled()).isOne());
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(messages));
	}

	@Test
	void failuresAreRetriedAloneAndEndAsDeadLetters() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		List<String> handled = new CopyOnWriteArrayList<>();
		List<Integer> attempts = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("some_fail", (message) -> {
			if (Set.of("3", "5", "8").contains(message.payload())) {
				attempts.add(message.deliveryAttempt());
				throw new IllegalStateException("no " + message.payload());
			}
			handled.add(message.payload());
		});
		this.fixture.client.setQueueConfig("some_fail", "max_retries", "2");
		List<Long> sent = this.fixture.send("some_fail", 10);
		container.start();
		await().until(() -> container.getCounters().batchesSettled() == 1);
		assertThat(this.fixture.pendingRetries("some_fail")).isEqualTo(3);
		assertThat(handled).containsExactly("1", "2", "4", "6", "7", "9", "10");
		await().untilAsserted(() -> assertThat(container.getCounters())
			.extracting(ListenerCounters::handled, ListenerCounters::retried, ListenerCounters::batchesSettled)
			.containsExactly(7L, 3L, 1L));
		this.fixture.retryNow("some_fail");
		await().until(() -> this.fixture.pendingRetries("some_fail") == 3);
		this.fixture.retryNow("some_fail");
		await().until(() -> this.fixture.deadLetters("some_fail") == 3);
		await().until(() -> this.fixture.events(MessageDeadLetteredEvent.class).size() == 3);
		assertThat(attempts).containsExactly(1, 1, 1, 2, 2, 2, 3, 3, 3);
		assertThat(handled).hasSize(7);
		assertThat(this.fixture.events(MessageDeadLetteredEvent.class)).allSatisfy((event) -> {
			assertThat(event.getDeliveryAttempt()).isEqualTo(3);
			assertThat(event.getType()).isEqualTo("number");
			assertThat(event.getReason()).startsWith("java.lang.IllegalStateException: no ");
			assertThat(event.getSource()).isSameAs(container);
		}).extracting(MessageDeadLetteredEvent::getMessageId).containsExactly(sent.get(2), sent.get(4), sent.get(7));
		assertThat(this.fixture.client.deadLetters("some_fail", 10)).extracting((row) -> row.reason())
			.containsExactlyInAnyOrder("java.lang.IllegalStateException: no 3", "java.lang.IllegalStateException: no 5",
					"java.lang.IllegalStateException: no 8");
	}

	@Test
	void delayCountsInMilliseconds() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofMillis(400));
		var container = this.fixture.container("millis", (message) -> {
			throw new IllegalStateException();
		});
		this.fixture.send("millis", 1);
		container.start();
		await().until(() -> this.fixture.pendingRetries("millis") == 1);
		assertThat(this.database.value(Double.class,
				"select extract(epoch from r.ev_retry_after - now())::float8 from pgque.retry_queue r"
						+ " join pgque.queue q on q.queue_id = r.ev_queue where q.queue_name = 'millis'"))
			.isLessThan(0.41)
			.isGreaterThan(-1);
	}

	@Test
	void delayBeyondTheDatabasesClockIsBounded() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction
			.retry(Duration.ofSeconds(Long.MAX_VALUE));
		var container = this.fixture.container("never", (message) -> {
			throw new IllegalStateException();
		});
		this.fixture.send("never", 1);
		container.start();
		await().until(() -> this.fixture.pendingRetries("never") == 1);
		this.database.update("delete from pgque.retry_queue");
	}

	@Test
	void rejectedMessageIsDeadAtOnceWithTheStoredPayload() {
		var container = this.fixture.container("rejected", (message) -> {
			throw new IllegalStateException(new RejectMessageException("bad\0 card"));
		});
		this.fixture.send("rejected", "order", "{\"id\" : 1}");
		container.start();
		await().until(() -> this.fixture.deadLetters("rejected") == 1);
		var dead = this.fixture.client.deadLetters("rejected", 1).get(0);
		assertThat(dead.reason()).isEqualTo("bad card");
		assertThat(dead.event().data()).isEqualTo("{\"id\" : 1}");
	}

	@Test
	void errorIsTheFailureOfItsMessage() {
		List<String> handled = new CopyOnWriteArrayList<>();
		List<Exception> failures = new CopyOnWriteArrayList<>();
		this.fixture.errorHandler = (failure, message, context) -> {
			failures.add(failure);
			return FailureAction.deadLetter();
		};
		var container = this.fixture.container("errors", (message) -> {
			switch (message.payload()) {
				case "1" -> throw new NoClassDefFoundError("some/Class");
				case "2" -> throw new StackOverflowError();
				case "3" -> throw new AssertionError("really");
				default -> handled.add(message.payload());
			}
		});
		this.fixture.send("errors", 4);
		container.start();
		await().until(() -> this.fixture.deadLetters("errors") == 3);
		assertThat(handled).containsExactly("4");
		assertThat(container.isRunning()).isTrue();
		assertThat(failures).allSatisfy((failure) -> assertThat(failure)
			.isInstanceOfSatisfying(PgqueListenerExecutionFailedException.class, (wrapper) -> {
				assertThat(wrapper.getQueue()).isEqualTo("errors");
				assertThat(wrapper.getConsumer()).isEqualTo(ListenerFixture.CONSUMER);
				assertThat(wrapper.getListenerId()).isEqualTo("errors.consumer");
				assertThat(wrapper.getMessageId()).isPositive();
				assertThat(wrapper.getCause()).isInstanceOf(Error.class);
			}));
	}

	@Test
	void lackOfMemoryIsNoMessagesFault() {
		AtomicInteger calls = new AtomicInteger();
		var container = this.fixture.container("memory", (message) -> {
			if (calls.incrementAndGet() == 1) {
				throw new OutOfMemoryError("made up");
			}
		});
		this.fixture.send("memory", 2);
		container.start();
		await().until(() -> this.fixture.isDrained("memory") && calls.get() == 3);
		assertThat(this.fixture.pendingRetries("memory")).isZero();
		await().untilAsserted(() -> assertThat(container.getCounters().failures()).isOne());
	}

	@Test
	void skippedFailureIsDone() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.skip();
		var container = this.fixture.container("skipped", (message) -> {
			throw new IllegalStateException();
		});
		this.fixture.send("skipped", 3);
		container.start();
		await().until(() -> container.getCounters().skipped() == 3);
		assertThat(this.fixture.isDrained("skipped")).isTrue();
		assertThat(this.fixture.pendingRetries("skipped")).isZero();
	}

	@Test
	void throwingErrorHandlerIsReplacedByTheDefault(CapturedOutput output) {
		this.fixture.errorHandler = (failure, message, context) -> {
			throw new UnsupportedOperationException("broken handler");
		};
		var container = this.fixture.container("broken_handler", (message) -> {
			throw new ClassCastException("hopeless");
		});
		this.fixture.send("broken_handler", 1);
		container.start();
		await().until(() -> this.fixture.deadLetters("broken_handler") == 1);
		await().untilAsserted(() -> assertThat(output)
			.contains("The error handler of listener 'broken_handler.consumer'", "broken handler"));
	}

	@Test
	void infrastructureFailureLeavesTheRestOfTheBatchAlone(CapturedOutput output) {
		AtomicBoolean outage = new AtomicBoolean(true);
		this.fixture.errorHandler = (failure, message,
				context) -> (new DefaultPgqueErrorHandler().handle(failure, message,
						context) instanceof FailureAction.AbortBatch) ? FailureAction.abortBatch(Duration.ofMillis(50))
								: FailureAction.deadLetter();
		List<PgqueMessage> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("outage", (message) -> {
			if ("2".equals(message.payload())) {
				throw new IllegalStateException("a failure before the outage");
			}
			if ("4".equals(message.payload()) && outage.get()) {
				throw new IllegalStateException(new QueryTimeoutException("dependency is down"));
			}
			handled.add(message);
		});
		this.fixture.send("outage", 6);
		container.start();
		await().until(() -> this.fixture.events(BatchAbortedEvent.class).size() >= 3);
		assertThat(handled).extracting(PgqueMessage::payload).containsExactly("1", "3");
		assertThat(this.fixture.deadLetters("outage")).isOne();
		outage.set(false);
		await().until(() -> this.fixture.isDrained("outage"));
		assertThat(handled).extracting(PgqueMessage::payload).containsExactly("1", "3", "4", "5", "6");
		assertThat(handled).extracting(PgqueMessage::deliveryAttempt).containsOnly(1);
		assertThat(this.fixture.deadLetters("outage")).isOne();
		await().untilAsserted(() -> assertThat(container.getCounters().batchesAborted()).isGreaterThanOrEqualTo(3));
		BatchAbortedEvent event = this.fixture.events(BatchAbortedEvent.class).get(0);
		assertThat(event.getPause()).isEqualTo(Duration.ofMillis(50));
		assertThat(event.getFailure()).hasRootCauseMessage("dependency is down");
		assertThat(count(output, "Caused by: org.springframework.dao.QueryTimeoutException")).isOne();
	}

	@Test
	void longPauseEndsWithTheContainer() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.abortBatch(Duration.ofHours(1));
		var container = this.fixture.container("long_pause", (message) -> {
			throw new IllegalStateException();
		});
		this.fixture.send("long_pause", 1);
		container.start();
		await().until(() -> !this.fixture.events(BatchAbortedEvent.class).isEmpty());
		assertThat(time(container::stop)).isLessThan(Duration.ofMillis(500));
		assertThat(container.isRunning()).isFalse();
	}

	@Test
	void failedSettleSettlesNothing(CapturedOutput output) throws Exception {
		TestDatabase.LoginRole role = this.database.createLogin("pgque_reader");
		String settle = this.database.value(String.class,
				"select oid::regprocedure::text from pg_catalog.pg_proc where proname = 'settle'"
						+ " and pronamespace = 'pgque'::regnamespace");
		ListenerFixture administrator = this.fixture;
		administrator.client.createQueue("no_settle");
		try (ListenerFixture consumer = new ListenerFixture(this.database, role.dataSource())) {
			List<String> handled = new CopyOnWriteArrayList<>();
			var container = consumer.container("no_settle", (message) -> {
				handled.add(message.payload());
				if ("2".equals(message.payload())) {
					throw new IllegalStateException("fails");
				}
			});
			administrator.send("no_settle", 3);
			this.database.execute("revoke execute on function " + settle + " from pgque_reader");
			container.start();
			await().until(() -> container.getCounters().failures() >= 3);
			assertThat(this.fixture.pendingRetries("no_settle")).isZero();
			assertThat(this.fixture.isDrained("no_settle")).isFalse();
			assertThat(container.getCounters().handled()).isZero();
			assertThat(handled.subList(0, 6)).containsExactly("1", "2", "3", "1", "2", "3");
			this.database.execute("grant execute on function " + settle + " to pgque_reader");
			await().until(() -> this.fixture.isDrained("no_settle"));
			assertThat(this.fixture.pendingRetries("no_settle")).isOne();
			// Back-off: 250 + 500 + ... ms, one stack trace, then a line each.
			int failures = (int) container.getCounters().failures();
			assertThat(failures).isLessThan(8);
			await().until(() -> output.toString().contains("works again, after " + failures + " failures"));
			assertThat(count(output, "Receiving by listener 'no_settle.consumer'")).isEqualTo(failures + 1);
			assertThat(count(output, "lacks a privilege")).isLessThanOrEqualTo(failures + 2);
		}
	}

	@Test
	void staleSettleIsReportedAndCounted(CapturedOutput output) {
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("stale", (message) -> {
			if (handled.isEmpty()) {
				// somebody else finishes the batch meanwhile
				this.fixture.client.settle(message.batchId(), null, List.of());
			}
			handled.add(message.payload());
			throw new IllegalStateException("too late");
		});
		this.fixture.send("stale", 1);
		container.start();
		await().until(() -> container.getCounters().staleSettles() == 1);
		assertThat(this.fixture.pendingRetries("stale")).isZero();
		await().untilAsserted(() -> assertThat(output).contains("was no longer open when it was to be settled"));
		this.fixture.send("stale", 1);
		await().until(() -> this.fixture.pendingRetries("stale") == 1);
		assertThat(container.getCounters().handled()).isZero();
	}

	@Test
	void throwingEventListenerChangesNothing(CapturedOutput output) {
		var container = this.fixture.container("bad_events", ListenerFixture.routes((message) -> {
			throw new RejectMessageException("reject");
		}), (created) -> created.setApplicationEventPublisher((event) -> {
			throw new AssertionError("listener of events fails");
		}));
		this.fixture.send("bad_events", 2);
		container.start();
		await().until(() -> this.fixture.deadLetters("bad_events") == 2);
		await().until(() -> this.fixture.isDrained("bad_events"));
		container.stop();
		assertThat(container.isRunning()).isFalse();
		await().untilAsserted(() -> assertThat(output).contains("A listener of MessageDeadLetteredEvent["));
	}

	@Test
	void handlerRunsWithoutConnectionAndTransaction() throws Exception {
		HikariDataSource single = this.database.pool(1);
		single.setConnectionTimeout(1000);
		try (ListenerFixture fixture = new ListenerFixture(this.database, single)) {
			List<Boolean> transactions = new CopyOnWriteArrayList<>();
			List<Integer> idleInTransaction = new CopyOnWriteArrayList<>();
			var container = fixture.container("no_connection", (message) -> {
				transactions.add(TransactionSynchronizationManager.isSynchronizationActive());
				try (Connection connection = single.getConnection()) {
					assertThat(connection.isValid(1)).isTrue();
				}
				idleInTransaction.add(this.database.value(Integer.class,
						"select count(*)::int from pg_catalog.pg_stat_activity where datname = current_database()"
								+ " and state like 'idle in transaction%'"));
			});
			this.fixture.send("no_connection", 2);
			container.start();
			await().until(() -> container.getCounters().handled() == 2);
			assertThat(transactions).containsExactly(false, false);
			assertThat(idleInTransaction).containsExactly(0, 0);
		}
	}

	@Test
	void batchThatFailsAsAWholeNeedsBoundedMemoryAndLog(CapturedOutput output) {
		int messages = BatchProcessor.MAX_FAILURES + 2000;
		this.fixture.properties.setFailureBrakeThreshold(0);
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		AtomicInteger calls = new AtomicInteger();
		var container = this.fixture.container("mass_failure", (message) -> {
			calls.incrementAndGet();
			throw new IllegalStateException("all fail");
		});
		this.fixture.send("mass_failure", messages);
		container.start();
		await().until(() -> container.getCounters().batchesSettled() == 2);
		assertThat(this.fixture.isDrained("mass_failure")).isTrue();
		assertThat(calls).hasValue(messages);
		assertThat(this.fixture.pendingRetries("mass_failure")).isEqualTo(messages);
		assertThat(count(output, "failed, it comes again in")).isLessThanOrEqualTo(200);
		this.database.update("delete from pgque.retry_queue");
	}

	@Test
	void typesAreDispatched() {
		List<String> calls = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("typed",
				EventRoutes.of(List.of(route("a", EventRoutes.Route.Kind.FILTER, calls, "order.placed", "order.paid"),
						route("b", EventRoutes.Route.Kind.FILTER, calls, "order.cancelled"),
						route("rest", EventRoutes.Route.Kind.REST, calls))),
				(created) -> {
				});
		this.fixture.send("typed", "order.placed", "1");
		this.fixture.send("typed", "order.cancelled", "2");
		this.fixture.send("typed", "order.paid", "3");
		this.fixture.send("typed", "other", "4");
		this.fixture.send("typed", null, "5");
		container.start();
		await().until(() -> container.getCounters().handled() == 5);
		assertThat(calls).containsExactly("a1", "b2", "a3", "rest4", "rest5");
	}

	@Test
	void typesOutsideAFilterAreSkippedAndCounted() {
		List<String> calls = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("filter",
				EventRoutes.of(List.of(route("a", EventRoutes.Route.Kind.FILTER, calls, "order.placed"))),
				(created) -> {
				});
		this.fixture.send("filter", "order.placed", "1");
		this.fixture.send("filter", "other", "2");
		container.start();
		await().until(() -> container.getCounters().skipped() == 1);
		assertThat(calls).containsExactly("a1");
		assertThat(this.fixture.isDrained("filter")).isTrue();
	}

	@Test
	void unknownTypeIsRetriedByDefault(CapturedOutput output) {
		DefaultPgqueMessageListenerContainer container = unknownType("unknown_nack");
		await().until(() -> container.getCounters().handled() == 2);
		assertThat(this.fixture.pendingRetries("unknown_nack")).isEqualTo(2);
		assertThat(count(output, "takes event type 'strange': such messages are retried")).isOne();
	}

	@Test
	void unknownTypeIsSkippedByPolicy(CapturedOutput output) {
		this.fixture.properties.setUnknownTypePolicy(UnknownTypePolicy.SKIP);
		DefaultPgqueMessageListenerContainer container = unknownType("unknown_skip");
		await().until(() -> container.getCounters().skipped() == 2);
		assertThat(this.fixture.isDrained("unknown_skip")).isTrue();
		assertThat(count(output, "takes event type 'strange': such messages are skipped")).isOne();
	}

	@Test
	void unknownTypeStopsTheContainerByPolicy(CapturedOutput output) {
		this.fixture.properties.setUnknownTypePolicy(UnknownTypePolicy.FAIL);
		DefaultPgqueMessageListenerContainer container = unknownType("unknown_fail");
		await().until(() -> !container.isRunning());
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isOne());
		assertThat(this.fixture.pendingRetries("unknown_fail")).isZero();
		assertThat(this.fixture.isDrained("unknown_fail")).isFalse();
		await().untilAsserted(() -> assertThat(output).contains("Stopping listener 'unknown_fail.consumer'",
				"takes event type 'strange'"));
	}

	private DefaultPgqueMessageListenerContainer unknownType(String queue) {
		List<String> calls = Collections.synchronizedList(new ArrayList<>());
		var container = this.fixture.container(queue,
				EventRoutes.of(List.of(route("a", EventRoutes.Route.Kind.PAYLOAD, calls, "OrderPlaced"))),
				(created) -> {
				});
		this.fixture.client.send(queue, "OrderPlaced", "1", io.pgque.client.EventExtras.NONE);
		this.fixture.client.send(queue, "strange", "2", io.pgque.client.EventExtras.NONE);
		this.fixture.client.send(queue, "strange", "3", io.pgque.client.EventExtras.NONE);
		this.fixture.client.send(queue, "OrderPlaced", "4", io.pgque.client.EventExtras.NONE);
		this.fixture.tick(queue);
		container.start();
		return container;
	}

	private static EventRoutes.Route route(String name, EventRoutes.Route.Kind kind, List<String> calls,
			String... types) {
		return new EventRoutes.Route(name, kind, Set.of(types),
				(PgqueMessageListener) (message) -> calls.add(name + message.payload()));
	}

	@Test
	void everythingIsHandledOnceWhileTheContainerIsStoppedAndStarted() {
		int messages = 2000;
		this.fixture.properties.setPageSize(100);
		List<Long> handled = new CopyOnWriteArrayList<>();
		Set<Long> running = ConcurrentHashMap.newKeySet();
		AtomicInteger overlaps = new AtomicInteger();
		var container = this.fixture.container("rounds", (message) -> {
			if (!running.isEmpty()) {
				overlaps.incrementAndGet();
			}
			running.add(message.id());
			handled.add(message.id());
			running.remove(message.id());
		});
		List<Long> sent = this.fixture.send("rounds", messages);
		for (int round = 1; round <= 20; round++) {
			int target = Math.min(messages - 100, round * messages / 23);
			container.start();
			await().pollInterval(Duration.ofMillis(1)).until(() -> handled.size() >= target);
			assertThat(time(container::stop)).isLessThan(Duration.ofSeconds(1));
			assertThat(container.isRunning()).isFalse();
			assertThat(this.database.value(Integer.class,
					"select count(*)::int from pgque.leases() where queue_name = 'rounds'"))
				.as("nothing stays claimed")
				.isZero();
			int atStop = handled.size();
			assertThat(running).isEmpty();
			await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(atStop));
		}
		container.start();
		await().until(() -> this.fixture.isDrained("rounds"));
		assertThat(handled).isEqualTo(sent);
		assertThat(overlaps).hasValue(0);
	}

	static int count(CharSequence output, String text) {
		return output.toString().split(java.util.regex.Pattern.quote(text), -1).length - 1;
	}

	static Duration time(Runnable action) {
		long begin = System.nanoTime();
		action.run();
		return Duration.ofNanos(System.nanoTime() - begin);
	}

}
