package io.pgque.listener;

import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

import io.pgque.client.EventExtras;
import io.pgque.event.HandlerStuckEvent;
import io.pgque.event.ListenerContainerIdleEvent;
import io.pgque.event.ListenerContainerNoLongerIdleEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/**
 * Tests for handlers that don't return, for idle containers, and for where consumers
 * start.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class ContainerWatchTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	ContainerWatchTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database, this.database.pool(8));
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void handlerThatRunsForTooLongIsReportedOnce(CapturedOutput output) {
		this.fixture.properties.setMaxHandlingTime(Duration.ofMillis(200));
		CountDownLatch mayLeave = new CountDownLatch(1);
		var container = this.fixture.container("stuck", (message) -> {
			if (message.payload().equals("2")) {
				mayLeave.await();
			}
		});
		List<Long> sent = this.fixture.send("stuck", 3);
		container.start();
		await().until(() -> this.fixture.events(HandlerStuckEvent.class).size() == 1);
		assertThat(this.fixture.events(HandlerStuckEvent.class)).singleElement().satisfies((event) -> {
			assertThat(event.getMessageId()).isEqualTo(sent.get(1));
			assertThat(event.getHandlingTime()).isGreaterThanOrEqualTo(Duration.ofMillis(200));
			assertThat(event.getThreadName()).isEqualTo("pgque-stuck.consumer");
			assertThat(event.isHandedOver()).isFalse();
		});
		await().during(Duration.ofMillis(500)).until(() -> this.fixture.events(HandlerStuckEvent.class).size() == 1);
		await().untilAsserted(() -> assertThat(output).contains("max-handling-time is 200 ms. It is at:")
			.contains("ContainerWatchTests"));
		mayLeave.countDown();
		await().until(() -> this.fixture.isDrained("stuck"));
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(3));
	}

	@ParameterizedTest
	@EnumSource(names = { "EXCLUSIVE", "COOPERATIVE" })
	void whatAStuckHandlerKeepsCanBeHandedOver(ListenerMode mode) {
		String queue = "hand_over_" + mode.name();
		this.fixture.properties.setMode(mode);
		this.fixture.properties.setMaxHandlingTime(Duration.ofMillis(200));
		this.fixture.properties.setStuckHandlerAction(StuckHandlerAction.HAND_OVER);
		CountDownLatch mayLeave = new CountDownLatch(1);
		AtomicInteger calls = new AtomicInteger();
		List<String> bySecond = new CopyOnWriteArrayList<>();
		var first = this.fixture.container(queue, (message) -> {
			if (calls.incrementAndGet() == 1) {
				mayLeave.await();
			}
		});
		var second = this.fixture.container(queue, (message) -> bySecond.add(message.payload()));
		this.fixture.send(queue, 2);
		first.start();
		await().until(() -> calls.get() == 1);
		second.start();
		await().until(() -> bySecond.equals(List.of("1", "2")));
		await().untilAsserted(() -> assertThat(this.fixture.events(HandlerStuckEvent.class)).singleElement()
			.satisfies((event) -> assertThat(event.isHandedOver()).isTrue()));
		mayLeave.countDown();
		await().until(() -> first.getCounters().staleSettles() == 1);
		second.stop();
		this.fixture.send(queue, 1);
		await().until(() -> calls.get() == 2);
		await().until(() -> this.fixture.isDrained(queue));
	}

	@Test
	void idlenessIsToldAgainAndAgainAndSoIsItsEnd() {
		this.fixture.properties.setIdleEventInterval(Duration.ofMillis(200));
		var container = this.fixture.container("idle_events", (message) -> {
		});
		container.start();
		await().until(() -> this.fixture.events(ListenerContainerIdleEvent.class).size() >= 2);
		await()
			.untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerIdleEvent.class).get(1).getIdleTime())
				.isGreaterThanOrEqualTo(Duration.ofMillis(400)));
		assertThat(this.fixture.events(ListenerContainerNoLongerIdleEvent.class)).isEmpty();
		this.fixture.send("idle_events", 3);
		await().until(() -> this.fixture.events(ListenerContainerNoLongerIdleEvent.class).size() == 1);
		container.pause();
		await().until(container::isPaused);
		int told = this.fixture.events(ListenerContainerIdleEvent.class).size();
		await().during(Duration.ofMillis(600))
			.until(() -> this.fixture.events(ListenerContainerIdleEvent.class).size() <= told + 1);
		container.stop();
		await().until(() -> Thread.getAllStackTraces()
			.keySet()
			.stream()
			.noneMatch((thread) -> thread.getName().equals("pgque-idle_events.consumer-watch")));
	}

	@ParameterizedTest
	@EnumSource(ListenerMode.class)
	void newConsumerStartsWhereItIsToldToAndAnOldOneWhereItWas(ListenerMode mode) {
		String queue = "start_" + mode.name();
		this.fixture.admin.ensureQueue(queue);
		this.fixture.tick(queue);
		send(queue, "1", "2");
		this.fixture.properties.setMode(mode);
		this.fixture.properties.setStartFrom(StartPosition.EARLIEST);
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container(queue, (message) -> handled.add(message.payload()));
		container.start();
		await().until(() -> handled.size() == 2);
		await().until(() -> this.fixture.isDrained(queue));
		container.stop();
		container.start();
		send(queue, "3");
		await().until(() -> handled.size() == 3);
		assertThat(handled).containsExactly("1", "2", "3");
	}

	@Test
	void consumerMayStartAtATime() {
		this.fixture.admin.ensureQueue("start_at");
		this.fixture.tick("start_at");
		send("start_at", "1");
		Instant between = this.database.value(OffsetDateTime.class, "select clock_timestamp()").toInstant();
		send("start_at", "2");
		this.fixture.properties.setStartFrom(StartPosition.at(between));
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("start_at", (message) -> handled.add(message.payload()));
		container.start();
		await().until(() -> this.fixture.isDrained("start_at") && !handled.isEmpty());
		assertThat(handled).containsExactly("2");
	}

	@Test
	void startPositionsAreRead() {
		assertThat(StartPosition.parse("NOW")).isSameAs(StartPosition.NOW);
		assertThat(StartPosition.parse("earliest")).isSameAs(StartPosition.EARLIEST);
		assertThat(StartPosition.parse("2026-01-31T13:00:00+01:00").getTime())
			.isEqualTo(Instant.parse("2026-01-31T12:00:00Z"));
		assertThatIllegalArgumentException().isThrownBy(() -> StartPosition.parse("yesterday"))
			.withMessageContaining("'now', 'earliest', or a time with an offset");
	}

	private void send(String queue, String... payloads) {
		for (String payload : payloads) {
			this.fixture.client.send(queue, "type", payload, EventExtras.NONE);
		}
		this.fixture.tick(queue);
	}

}
