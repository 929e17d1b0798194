package io.pgque.annotation;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.client.DeadLetterRow;
import io.pgque.client.PgqueClient;
import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.core.PgqueAdmin;
import io.pgque.core.SimpleEventTypeResolver;
import io.pgque.listener.BackOffSettings;
import io.pgque.listener.DefaultPgqueErrorHandler;
import io.pgque.listener.PgqueMessageListenerContainer;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.converter.PgqueMessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * A converter may fail in any way: it is the message's failure, and nobody else's.
 */
@PgqueDatabase
class ConversionFailureTests {

	private static final List<String> calls = new CopyOnWriteArrayList<>();

	private static final List<Integer> attempts = new CopyOnWriteArrayList<>();

	private final TestDatabase database;

	private final ListenerContext context;

	ConversionFailureTests(TestDatabase database) {
		this.database = database;
		this.context = new ListenerContext(database);
	}

	@AfterEach
	void tearDown() {
		this.context.close();
	}

	@Test
	void unusualExceptionsAndErrorsEndAsDeadLetters() {
		PgqueMessageListenerContainer container = this.context.start(Converting.class, Listening.class)
			.getListenerContainer("unusual.c");
		this.context.client.setQueueConfig("unusual", "max_retries", "1");
		this.context.send("unusual", "t", "good 1", "class missing", "unchecked", "checked", "good 2");
		await().until(() -> {
			this.database.update("update pgque.retry_queue set ev_retry_after = now() - interval '1 second'");
			this.context.client.moveDueRetries();
			this.context.client.tick(List.of("unusual"));
			return this.context.client.deadLetters("unusual", 10).size() == 3;
		});
		assertThat(calls).containsExactly("good 1", "good 2");
		assertThat(attempts).containsExactlyInAnyOrder(1, 1, 1, 2, 2, 2);
		assertThat(this.context.client.deadLetters("unusual", 10)).extracting((row) -> row.event().data())
			.containsExactlyInAnyOrder("class missing", "unchecked", "checked");
		assertThat(this.context.client.deadLetters("unusual", 10)).extracting(DeadLetterRow::reason)
			.anyMatch((reason) -> reason.contains("NoClassDefFoundError: some/Class"))
			.anyMatch((reason) -> reason.contains("UnsupportedOperationException: cannot"))
			.anyMatch((reason) -> reason.contains("java.io.IOException: unreadable"));
		assertThat(container.isRunning()).isTrue();
		this.context.send("unusual", "t", "good 3");
		await().until(() -> calls.contains("good 3"));
	}

	@Configuration(proxyBeanMethods = false)
	static class Converting {

		@Bean
		DefaultPgqueListenerContainerFactory pgqueListenerContainerFactory(TestDatabase database) {
			DefaultPgqueListenerContainerFactory factory = new DefaultPgqueListenerContainerFactory(
					new PgqueClient(database.dataSource()), new PgqueAdmin(database.dataSource(), List.of()),
					new Unreliable(), new SimpleEventTypeResolver());
			factory.getContainerProperties().setPollInterval(Duration.ofMillis(20));
			factory.setErrorHandler(new DefaultPgqueErrorHandler(
					new BackOffSettings(Duration.ofMillis(1), 1, Duration.ofMillis(1), Duration.ZERO)));
			return factory;
		}

	}

	static class Unreliable implements PgqueMessageConverter {

		@Override
		public @Nullable String toText(@Nullable Object payload) {
			return (payload != null) ? payload.toString() : null;
		}

		@Override
		public @Nullable Object fromText(ReceivedMessage message, Type targetType) {
			String text = message.payload();
			if (text != null && !text.startsWith("good")) {
				attempts.add(message.deliveryAttempt());
				fail(text);
			}
			return new Order(text);
		}

		private static void fail(String text) {
			switch (text) {
				case "class missing" -> throw new NoClassDefFoundError("some/Class");
				case "unchecked" -> throw new UnsupportedOperationException("cannot");
				default -> Unreliable.<RuntimeException>sneak(new java.io.IOException("unreadable"));
			}
		}

		@SuppressWarnings("unchecked")
		private static <E extends Exception> void sneak(Exception failure) throws E {
			throw (E) failure;
		}

	}

	record Order(@Nullable String text) {
	}

	static class Listening {

		@PgqueListener(queue = "unusual", consumer = "c")
		void handle(Order order) {
			calls.add(order.text());
		}

	}

}
