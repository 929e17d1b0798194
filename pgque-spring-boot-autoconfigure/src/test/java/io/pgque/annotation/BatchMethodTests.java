package io.pgque.annotation;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.core.PgqueMessage;
import io.pgque.listener.Acknowledgment;
import io.pgque.listener.BatchListenerFailedException;
import io.pgque.listener.PgqueBatch;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.header.PgqueHeaders;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import org.springframework.messaging.Message;
import org.springframework.messaging.handler.annotation.Header;

import static io.pgque.annotation.ListenerContext.awaitCalls;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests for methods that take several messages, or acknowledge.
 */
@PgqueDatabase
class BatchMethodTests {

	private static final List<Object> calls = new CopyOnWriteArrayList<>();

	private final ListenerContext context;

	BatchMethodTests(TestDatabase database) {
		this.context = new ListenerContext(database);
		calls.clear();
	}

	@AfterEach
	void tearDown() {
		this.context.close();
	}

	@Test
	void listsOfPayloadsMessagesAndSpringMessages() {
		this.context.start(Lists.class);
		this.context.send("b1", "Order", "{\"id\":1}", "{\"id\":2}");
		awaitCalls(calls, List.of(new Order(1), new Order(2)));
		this.context.send("b2", "Order", "{\"id\":1}", "{\"id\":2}");
		awaitCalls(calls, List.of(new Order(1), new Order(2)), "{\"id\":1} {\"id\":2}");
		calls.clear();
		this.context.send("b3", "Order", "{\"id\":1}", "{\"id\":2}");
		awaitCalls(calls, "Order of Order[id=1], Order of Order[id=2]");
		calls.clear();
		this.context.send("b4", "text", "a", "b");
		awaitCalls(calls, List.of("a", "b"), 2, 2);
	}

	@Test
	void payloadThatCannotBeConvertedIsThatMessagesFailureOnly() {
		var container = this.context.start(Positions.class).getListenerContainer("b5.b");
		this.context.send("b5", "Order", "{\"id\":1}", "no JSON", "{\"id\":3}", "{\"id\":4}");
		awaitCalls(calls, List.of(1L, 3L, 4L), List.of(1L, 3L, 4L), List.of(4L), List.of(4L));
		await().until(() -> container.getCounters().batchesSettled() == 1);
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(2));
		await().untilAsserted(() -> assertThat(container.getCounters().retried()).isOne());
		assertThat(this.context.client.deadLetters("b5", 10)).singleElement()
			.satisfies((dead) -> assertThat(dead.event().data()).isEqualTo("no JSON"));
	}

	@Test
	void methodIsNotCalledWhenNothingCanBeConverted() {
		var container = this.context.start(Positions.class).getListenerContainer("b5.b");
		this.context.send("b5", "Order", "x", "y");
		await().until(() -> container.getCounters().deadLettered() == 2);
		assertThat(calls).isEmpty();
	}

	@Test
	void listMayBeThePayload() {
		this.context.start(ListPayload.class);
		this.context.send("b6", "orders", "[{\"id\":1},{\"id\":2}]");
		awaitCalls(calls, List.of(new Order(1), new Order(2)));
	}

	@Test
	void manualAcknowledgmentByMethods() {
		var registry = this.context.start(Manual.class);
		this.context.send("b7", "t", "1", "2", "3");
		awaitCalls(calls, "1", "2", "3");
		var container = registry.getListenerContainer("b7.b");
		await().until(() -> container.getCounters().batchesSettled() == 1);
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(3));
		calls.clear();
		this.context.send("b8", "t", "1", "2");
		awaitCalls(calls, List.of("1", "2"));
		await().until(() -> registry.getListenerContainer("b8.b").getCounters().retried() == 1);
		await().untilAsserted(() -> assertThat(registry.getListenerContainer("b8.b").getCounters().handled()).isOne());
	}

	@Test
	void whatCannotWorkIsRefused() {
		this.context.refused(WithHeader.class, "WithHeader.handle(", "parameter 2 is about a single one");
		this.context.refused(ForcedWithoutList.class, "ForcedWithoutList.handle(String)",
				"no parameter for several messages");
		this.context.refused(ForbiddenBatch.class, "ForbiddenBatch.handle(PgqueBatch)", "'batch' is false");
		this.context.refused(NoAcknowledgment.class, "NoAcknowledgment.handle(String)", "ackMode 'manual'",
				"no parameter through which");
		this.context.refused(NoMode.class, "NoMode.handle(String)", "'ackMode'", "'perhaps'");
		this.context.refused(TwoModes.class, "TwoModes.first(", "TwoModes.second(", "ackMode");
	}

	record Order(long id) {
	}

	static class Lists {

		@PgqueListener(queue = "b1", consumer = "b")
		void payloads(List<Order> orders) {
			calls.add(orders);
		}

		@PgqueListener(queue = "b2", consumer = "b")
		void messages(List<PgqueMessage> messages) {
			calls.add(messages.get(0).payload() + " " + messages.get(1).payload());
		}

		@PgqueListener(queue = "b3", consumer = "b")
		void springMessages(List<Message<Order>> messages) {
			calls.add(String.join(", ",
					messages.stream()
						.map((message) -> message.getHeaders().get(PgqueHeaders.TYPE) + " of " + message.getPayload())
						.toList()));
		}

		@PgqueListener(queue = "b4", consumer = "b")
		void several(Collection<String> texts, PgqueBatch batch, Iterable<? extends ReceivedMessage> messages) {
			calls.add(texts);
			calls.add(batch.messages().size());
			calls.add(((Collection<?>) messages).size());
		}

	}

	static class Positions {

		@PgqueListener(queue = "b5", consumer = "b")
		void handle(List<Order> orders, PgqueBatch batch) {
			List<Long> ids = orders.stream().map(Order::id).toList();
			calls.add(ids);
			calls.add(batch.messages()
				.stream()
				.map((message) -> Long.valueOf(message.payload().substring(6, 7)))
				.toList());
			if (ids.contains(3L)) {
				throw new BatchListenerFailedException(new IllegalStateException(), ids.indexOf(3L));
			}
		}

	}

	static class ListPayload {

		@PgqueListener(queue = "b6", consumer = "b", batch = "${off}")
		void handle(List<Order> orders) {
			calls.add(orders);
		}

	}

	static class Manual {

		@PgqueListener(queue = "b7", consumer = "b", ackMode = "${manual}")
		void single(String payload, Acknowledgment acknowledgment) {
			calls.add(payload);
			if ("3".equals(payload)) {
				acknowledgment.acknowledge();
			}
		}

		@PgqueListener(queue = "b8", consumer = "b", ackMode = "manual")
		void several(List<String> payloads, List<PgqueMessage> messages, Acknowledgment acknowledgment) {
			calls.add(payloads);
			acknowledgment.nack(messages.get(1), Duration.ofHours(1), "later");
			acknowledgment.acknowledge();
		}

	}

	static class WithHeader {

		@PgqueListener(queue = "b", consumer = "b")
		void handle(List<String> payloads, @Header("tenant") String tenant) {
		}

	}

	static class ForcedWithoutList {

		@PgqueListener(queue = "b", consumer = "b", batch = "true")
		void handle(String payload) {
		}

	}

	static class ForbiddenBatch {

		@PgqueListener(queue = "b", consumer = "b", batch = "false")
		void handle(PgqueBatch batch) {
		}

	}

	static class NoAcknowledgment {

		@PgqueListener(queue = "b", consumer = "b", ackMode = "manual")
		void handle(String payload) {
		}

	}

	static class NoMode {

		@PgqueListener(queue = "b", consumer = "b", ackMode = "perhaps")
		void handle(String payload) {
		}

	}

	static class TwoModes {

		@PgqueListener(queue = "b", consumer = "b", types = "a", ackMode = "manual")
		void first(PgqueBatch batch) {
		}

		@PgqueListener(queue = "b", consumer = "b", types = "b", ackMode = "batch")
		void second(PgqueBatch batch) {
		}

	}

}
