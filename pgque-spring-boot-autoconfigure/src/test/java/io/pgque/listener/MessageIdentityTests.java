package io.pgque.listener;

import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.core.PgqueMessage;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * A message is settled by its id: neither what it holds nor what a handler makes of it
 * counts.
 */
@PgqueDatabase
class MessageIdentityTests {

	private final ListenerFixture fixture;

	MessageIdentityTests(TestDatabase database) {
		this.fixture = new ListenerFixture(database);
	}

	@BeforeEach
	void setUp() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void whatIsStoredComesAgainAndIsDeadNotWhatTheHandlerMadeOfIt() {
		List<PgqueMessage> received = new CopyOnWriteArrayList<>();
		var container = this.fixture.batchContainer("forged", (batch) -> {
			received.addAll(batch.messages());
			PgqueMessage real = batch.messages().get(0);
			batch.retry(forged(real), Duration.ofHours(1), "again");
			batch.deadLetter(forged(batch.messages().get(1)), "never");
		});
		this.fixture.client.setQueueConfig("forged", "max_retries", "1");
		this.fixture.client.sendBatch("forged", "order", List.of("{\"id\" : 1}", "{\"id\" : 2}"));
		this.fixture.tick("forged");
		container.start();
		await().until(() -> this.fixture.deadLetters("forged") == 1);
		assertDead("{\"id\" : 2}");
		await().until(() -> this.fixture.isDrained("forged"));
		container.stop();
		this.fixture.retryNow("forged");
		var second = this.fixture.container("forged", (message) -> {
			received.add(message);
			throw new IllegalStateException("still no");
		});
		second.start();
		await().until(() -> this.fixture.deadLetters("forged") == 2);
		assertDead("{\"id\" : 1}");
		assertThat(received).extracting(PgqueMessage::payload)
			.containsExactly("{\"id\" : 1}", "{\"id\" : 2}", "{\"id\" : 1}");
		assertThat(received).extracting(PgqueMessage::type).containsOnly("order");
	}

	private void assertDead(String payload) {
		assertThat(this.fixture.client.deadLetters("forged", 10)).extracting((row) -> row.event().data())
			.contains(payload);
		assertThat(this.fixture.client.deadLetters("forged", 10)).extracting((row) -> row.event().type())
			.containsOnly("order");
	}

	private static PgqueMessage forged(PgqueMessage message) {
		return new PgqueMessage(message.id(), message.batchId(), "elsewhere", "somebody", "forged", "forged", 0,
				OffsetDateTime.now(), "forged", "forged", "forged", "forged", Map.of("forged", "yes"));
	}

	@Test
	void equalPayloadsAreSettledEachByItself() {
		List<PgqueMessage> handled = new CopyOnWriteArrayList<>();
		List<Long> failed = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("equal", (message) -> {
			if (message.deliveryAttempt() == 1 && message.id() % 3 == 0) {
				failed.add(message.id());
				throw new IllegalStateException("this one, once");
			}
			handled.add(message);
		});
		List<Long> ids = this.fixture.client.sendBatch("equal", "order",
				List.of("{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "{\"a\":1,\"b\":2}",
						"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"));
		this.fixture.tick("equal");
		container.start();
		await().until(() -> this.fixture.pendingRetries("equal") == 2);
		this.fixture.retryNow("equal");
		await().until(() -> handled.size() == 6);
		await().until(() -> this.fixture.isDrained("equal"));
		assertThat(handled).extracting(PgqueMessage::id).containsExactlyInAnyOrderElementsOf(ids);
		assertThat(handled.subList(4, 6)).extracting(PgqueMessage::id).containsExactlyElementsOf(failed);
		assertThat(this.fixture.pendingRetries("equal")).isZero();
	}

}
