package io.pgque.listener;

import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

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

/**
 * Tests for failures that come again and again, or from where nobody expects them: they
 * neither lose a message nor repeat or hold up the others.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class StubbornFailureTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	StubbornFailureTests(TestDatabase database) {
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

	@Test
	void lackOfMemoryRepeatsNoMessageBeforeIt() {
		AtomicInteger failures = new AtomicInteger();
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("memory", (message) -> {
			if ("3".equals(message.payload()) && failures.incrementAndGet() <= 2) {
				throw new OutOfMemoryError("made up");
			}
			handled.add(message.payload());
		});
		this.fixture.send("memory", 4);
		container.start();
		await().until(() -> this.fixture.isDrained("memory") && handled.size() >= 4);
		assertThat(handled).containsExactly("1", "2", "3", "4");
	}

	@Test
	void errorHandlerWithoutAnAnswerLosesNothing(CapturedOutput output) {
		this.fixture.errorHandler = (failure, message, context) -> null;
		var container = this.fixture.container("no_answer", (message) -> {
			throw new IllegalStateException("declined");
		});
		this.fixture.send("no_answer", 1);
		container.start();
		await().until(() -> container.getCounters().retried() == 1);
		assertThat(this.fixture.pendingRetries("no_answer")).isOne();
		await().untilAsserted(() -> assertThat(output).contains("It returned null instead of an action"));
	}

	@Test
	void errorHandlerThatEndsInAnErrorIsReplacedByTheDefault() {
		this.fixture.errorHandler = (failure, message, context) -> {
			throw new NoClassDefFoundError("made up");
		};
		var container = this.fixture.container("error", (message) -> {
			throw new ClassCastException("hopeless");
		});
		this.fixture.send("error", 1);
		container.start();
		await().until(() -> this.fixture.deadLetters("error") == 1);
	}

	@Test
	void messageThatEndsItsBatchAgainAndAgainIsRetried() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.abortBatch(Duration.ZERO);
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("stuck", (message) -> {
			if ("2".equals(message.payload())) {
				throw new IllegalStateException("as if everything were down");
			}
			handled.add(message.payload());
		});
		this.fixture.send("stuck", 3);
		container.start();
		await().until(() -> handled.size() == 2);
		await().until(() -> this.fixture.pendingRetries("stuck") == 1);
		assertThat(handled).containsExactly("1", "3");
		await().untilAsserted(() -> assertThat(container.getCounters().batchesAborted())
			.isEqualTo(BatchRun.StubbornMessages.MAX_ABORTS));
	}

	@Test
	void connectionLostWhileSettlingRepeatsNoMessage(CapturedOutput output) throws Exception {
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("lost", (message) -> handled.add(message.payload()));
		this.fixture.send("lost", 3);
		try (Connection blocker = this.database.connect(); Statement statement = blocker.createStatement()) {
			blocker.setAutoCommit(false);
			statement.execute("select from pgque_internal.sub s join pgque.queue q on q.queue_id = s.sub_queue"
					+ " where q.queue_name = 'lost' for key share of s");
			container.start();
			await().until(() -> handled.size() == 3);
			// Only settling is in the way of a writer of positions.
			statement.execute("lock table pgque_internal.cursor_0, pgque_internal.cursor_1, pgque_internal.cursor_2"
					+ " in share mode");
			await().until(() -> this.fixture.isDrained("lost") || terminateWhoSettles());
			blocker.rollback();
		}
		await().until(() -> this.fixture.isDrained("lost"));
		assertThat(handled).containsExactly("1", "2", "3");
	}

	private boolean terminateWhoSettles() {
		return !this.database
			.query("select pg_terminate_backend(pid) from pg_stat_activity"
					+ " where wait_event_type = 'Lock' and query like '%pgque.settle%'")
			.isEmpty();
	}

}
