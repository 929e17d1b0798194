package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;

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
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/**
 * Tests for containers with {@link AckMode#MANUAL}.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class ManualAcknowledgmentTests {

	private final TestDatabase database;

	private final List<String> handled = new CopyOnWriteArrayList<>();

	private ListenerFixture fixture;

	ManualAcknowledgmentTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database);
		this.fixture.properties.setFailureBrakePause(Duration.ofMillis(50));
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void acknowledgesWhatWasHandedOverSoFar() {
		this.fixture.properties.setPageSize(2);
		var container = this.fixture.manualContainer("so_far", (message, acknowledgment) -> {
			this.handled.add(message.payload());
			if ("5".equals(message.payload())) {
				acknowledgment.acknowledge();
			}
		});
		this.fixture.send("so_far", 5);
		container.start();
		await().until(() -> this.fixture.isDrained("so_far"));
		assertThat(this.handled).containsExactly("1", "2", "3", "4", "5");
		await().untilAsserted(() -> assertThat(container.getCounters())
			.extracting(ListenerCounters::handled, ListenerCounters::batchesSettled)
			.containsExactly(5L, 1L));
	}

	@Test
	void whatIsNeverAcknowledgedComesAgainAfterAPauseAndIsNoFailure(CapturedOutput output) {
		var container = this.fixture.manualContainer("never", (message, acknowledgment) -> {
			this.handled.add(message.payload());
			assertThat(message.deliveryAttempt()).isOne();
			if ("2".equals(message.payload()) || this.handled.size() > 6) {
				acknowledgment.acknowledge();
			}
		});
		this.fixture.send("never", 4);
		container.start();
		await().until(() -> this.fixture.isDrained("never"));
		assertThat(this.handled).startsWith("1", "2", "3", "4", "3", "4", "3").endsWith("3", "4");
		assertThat(container.getCounters().retried()).isZero();
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(4));
		await().untilAsserted(() -> assertThat(output).contains("2 messages of batch ")
			.contains("were not acknowledged; they come again"));
	}

	@Test
	void nackOfThisAndOfEarlierMessages() {
		AtomicReference<PgqueMessage> first = new AtomicReference<>();
		var container = this.fixture.manualContainer("nack", (message, acknowledgment) -> {
			switch (message.payload()) {
				case "1" -> first.set(message);
				case "2" -> acknowledgment.nack(message, Duration.ofHours(1), "not now");
				case "3" -> {
					acknowledgment.nack(first.get(), Duration.ofHours(1), "neither");
					acknowledgment.acknowledge();
				}
				default -> throw new IllegalStateException("acknowledged, then failed");
			}
		});
		this.fixture.send("nack", 4);
		container.start();
		await().until(() -> this.fixture.isDrained("nack"));
		assertThat(this.fixture.pendingRetries("nack")).isEqualTo(3);
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isOne());
	}

	@Test
	void failureAfterTheAcknowledgmentIsAFailure() {
		var container = this.fixture.manualContainer("after", (message, acknowledgment) -> {
			this.handled.add(message.payload());
			if (message.deliveryAttempt() == 1) {
				acknowledgment.acknowledge();
				if ("2".equals(message.payload())) {
					throw new IllegalStateException("the transaction could not commit");
				}
			}
			acknowledgment.acknowledge();
		});
		this.fixture.send("after", 2);
		container.start();
		await().until(() -> this.fixture.pendingRetries("after") == 1);
		this.fixture.retryNow("after");
		await().until(() -> container.getCounters().handled() == 2);
		assertThat(this.handled).containsExactly("1", "2", "2");
	}

	@Test
	void acknowledgmentIsOverWhenTheHandlerReturns() {
		AtomicReference<Acknowledgment> late = new AtomicReference<>();
		var container = this.fixture.manualContainer("late", (message, acknowledgment) -> {
			late.set(acknowledgment);
			acknowledgment.acknowledge();
		});
		this.fixture.send("late", 1);
		container.start();
		await().until(() -> this.fixture.isDrained("late"));
		assertThatIllegalStateException().isThrownBy(() -> late.get().acknowledge());
	}

	@Test
	void batchListenerAcknowledgesWhatHasNoOtherOutcome() {
		this.fixture.properties.setAckMode(AckMode.MANUAL);
		var container = this.fixture.batchContainer("batch", (batch) -> {
			this.handled.add(batch.messages().get(0).payload());
			if (this.handled.size() == 1) {
				batch.done(batch.messages().get(0));
				batch.done(batch.messages().get(2));
			}
			else {
				batch.nack(batch.messages().get(0), Duration.ofHours(1), null);
				batch.acknowledge();
			}
		});
		this.fixture.send("batch", 4);
		container.start();
		await().until(() -> this.fixture.isDrained("batch"));
		// The third was done, but behind one that was not.
		assertThat(this.handled).containsExactly("1", "2");
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(3));
		await().untilAsserted(() -> assertThat(container.getCounters().retried()).isOne());
	}

}
