package io.pgque.annotation;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.core.PgqueMessage;
import io.pgque.core.PgqueTemplate;
import io.pgque.listener.Acknowledgment;
import io.pgque.listener.FailureAction;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.ReplySender;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.support.header.PgqueHeaders;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.messaging.Message;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests for methods whose return value is sent.
 */
@PgqueDatabase
class ReplyTests {

	private static final List<String> calls = new CopyOnWriteArrayList<>();

	private final TestDatabase database;

	private final ListenerContext context;

	ReplyTests(TestDatabase database) {
		this.database = database;
		this.context = new ListenerContext(database);
		calls.clear();
	}

	@AfterEach
	void tearDown() {
		this.context.close();
	}

	private List<String> sent(String queue) {
		return this.database.values(String.class,
				"select e.ev_type || ' ' || e.ev_data || coalesce(' ' || e.ev_extra1, '')"
						+ " || coalesce(' ' || e.ev_extra4, '') from pgque.event e"
						+ " join pgque.queue q on q.queue_id = e.ev_queue where q.queue_name = ? order by e.ev_id",
				queue);
	}

	@Test
	void repliesAreSentWithTheSettlement() {
		var registry = this.context.start(Replying.class, Sending.class);
		this.context.send("r1", "t", "a", "fail", "null", "b");
		await().until(() -> registry.getListenerContainer("r1.r").getCounters().batchesSettled() == 1);
		assertThat(sent("answers")).containsExactly("Answer {\"text\":\"to a\"}", "Answer {\"text\":\"to b\"}");
		assertThat(
				this.database.value(Integer.class,
						"select count(distinct ev_txid)::int from pgque.event e"
								+ " join pgque.queue q on q.queue_id = e.ev_queue where q.queue_name = 'answers'"))
			.isOne();
	}

	@Test
	void springMessageCarriesTypeKeyAndHeaders() {
		var registry = this.context.start(Replying.class, Sending.class);
		this.context.send("r2", "t", "a");
		await().until(() -> registry.getListenerContainer("r2.r").getCounters().batchesSettled() == 1);
		assertThat(sent("messages")).containsExactly("own.type to a key-1 {\"tenant\":\"acme\"}");
	}

	@Test
	void replyThatCannotBeConvertedIsTheMessagesFailure() {
		var registry = this.context.start(Replying.class, Sending.class);
		this.context.send("r3", "t", "nul", "loop", "fine");
		await().until(() -> registry.getListenerContainer("r3.r").getCounters().batchesSettled() == 1);
		await().untilAsserted(
				() -> assertThat(registry.getListenerContainer("r3.r").getCounters().deadLettered()).isEqualTo(2));
		assertThat(sent("texts")).containsExactly("default to fine");
	}

	@Test
	void nothingIsSettledWhenTheReplyCannotBeSent() {
		var registry = this.context.start(Replying.class, Sending.class);
		var container = registry.getListenerContainer("r4.r");
		this.context.send("r4", "t", "first");
		await().until(() -> container.getCounters().batchesSettled() == 1);
		this.context.client.dropQueue("lost", true);
		this.context.send("r4", "t", "a");
		await().until(() -> calls.stream().filter("r4 a"::equals).count() >= 2);
		await().untilAsserted(() -> assertThat(container.getCounters().batchesSettled()).isOne());
		this.context.client.createQueue("lost");
		await().atMost(Duration.ofSeconds(10)).until(() -> sent("lost").equals(List.of("default to a")));
		await().until(() -> container.getCounters().batchesSettled() == 2);
	}

	@Test
	void replyWaitsForTheAcknowledgment() {
		var registry = this.context.start(Replying.class, Sending.class);
		this.context.send("r5", "t", "1", "2", "3");
		await().until(() -> registry.getListenerContainer("r5.r").getCounters().handled() == 2);
		assertThat(sent("later")).containsExactly("default to 1", "default to 2");
		registry.getListenerContainer("r5.r").stop();
	}

	@Test
	void classLevelDestination() {
		var registry = this.context.start(ClassLevel.class, Sending.class);
		this.context.send("r6", "t", "a");
		await().until(() -> registry.getListenerContainer("r6.r").getCounters().batchesSettled() == 1);
		assertThat(sent("class-answers")).containsExactly("default to a");
	}

	@Test
	void whatCannotWorkIsRefused() {
		this.context.refused(NothingToSend.class, "NothingToSend.handle(String)", "returns nothing");
		this.context.refused(Several.class, "Several.handle(java.util.List<java.lang.String>)",
				"takes several messages");
		this.context.refused(TwoQueues.class, "TwoQueues.handle(String)", "names 2 queues");
		this.context.refused(EmptyQueue.class, "EmptyQueue.handle(String)", "'@SendTo'", "is empty");
		this.context.refused(NoSender.class, "NoSender.handle(String)", "answers", "sends no replies");
	}

	record Answer(String text) {
	}

	record Loop() {

		public Object getLoop() {
			throw new IllegalStateException("can't be written");
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class Sending {

		@Bean
		DefaultPgqueListenerContainerFactory pgqueListenerContainerFactory(TestDatabase database) {
			var pool = database.pool(5);
			DefaultPgqueListenerContainerFactory factory = ListenerContext.factory(pool);
			factory.setReplySender(new ReplySender(new PgqueTemplate(pool, new Jackson2MessageConverter()),
					new TransactionTemplate(new DataSourceTransactionManager(pool))));
			return factory;
		}

		@Bean
		PgqueErrorHandler later() {
			return (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		}

	}

	static class Replying {

		@PgqueListener(queue = "r1", consumer = "r", errorHandler = "later")
		@SendTo("answers")
		Answer answer(String payload) {
			if ("fail".equals(payload)) {
				throw new IllegalStateException();
			}
			return "null".equals(payload) ? null : new Answer("to " + payload);
		}

		@PgqueListener(queue = "r2", consumer = "r")
		@SendTo("${messages:messages}")
		Message<String> message(PgqueMessage message) {
			return MessageBuilder.withPayload("to " + message.payload())
				.setHeader(PgqueHeaders.TYPE, "own.type")
				.setHeader(PgqueHeaders.KEY, "key-1")
				.setHeader(PgqueHeaders.MESSAGE_ID, message.id())
				.setHeader("tenant", "acme")
				.build();
		}

		@PgqueListener(queue = "r3", consumer = "r")
		@SendTo("texts")
		Object text(String payload) {
			return switch (payload) {
				case "nul" -> "a\0b";
				case "loop" -> new Loop();
				default -> "to " + payload;
			};
		}

		@PgqueListener(queue = "r4", consumer = "r")
		@SendTo("lost")
		String lost(String payload) {
			calls.add("r4 " + payload);
			return "to " + payload;
		}

		@PgqueListener(queue = "r5", consumer = "r", ackMode = "manual")
		@SendTo("later")
		String acknowledged(String payload, Acknowledgment acknowledgment) {
			if ("2".equals(payload)) {
				acknowledgment.acknowledge();
			}
			return "to " + payload;
		}

		@PgqueListener(queue = "r7", consumer = "r")
		String notSent(String payload) {
			return payload;
		}

	}

	@SendTo("class-answers")
	static class ClassLevel {

		@PgqueListener(queue = "r6", consumer = "r")
		String handle(String payload) {
			return "to " + payload;
		}

	}

	static class NothingToSend {

		@PgqueListener(queue = "r", consumer = "r")
		@SendTo("answers")
		void handle(String payload) {
		}

	}

	static class Several {

		@PgqueListener(queue = "r", consumer = "r")
		@SendTo("answers")
		String handle(List<String> payloads) {
			return "";
		}

	}

	static class TwoQueues {

		@PgqueListener(queue = "r", consumer = "r")
		@SendTo({ "a", "b" })
		String handle(String payload) {
			return payload;
		}

	}

	static class EmptyQueue {

		@PgqueListener(queue = "r", consumer = "r")
		@SendTo("${empty:}")
		String handle(String payload) {
			return payload;
		}

	}

	static class NoSender {

		@PgqueListener(queue = "r", consumer = "r")
		@SendTo("answers")
		String handle(String payload) {
			return payload;
		}

	}

}
