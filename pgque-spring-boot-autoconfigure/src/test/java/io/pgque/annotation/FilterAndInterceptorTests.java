package io.pgque.annotation;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.config.PgqueContainerCustomizer;
import io.pgque.core.PgqueMessage;
import io.pgque.listener.BackOffSettings;
import io.pgque.listener.FailureAction;
import io.pgque.listener.PgqueBatchInterceptor;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageFilter;
import io.pgque.listener.PgqueMessageInterceptor;
import io.pgque.listener.PgqueMessageListenerContainer;
import io.pgque.support.ReceivedMessage;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

import static io.pgque.annotation.ListenerContext.awaitCalls;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests for what listeners name to go with them, and for what is called around them.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class FilterAndInterceptorTests {

	private static final List<String> calls = new CopyOnWriteArrayList<>();

	private final ListenerContext context;

	FilterAndInterceptorTests(TestDatabase database) {
		this.context = new ListenerContext(database);
		calls.clear();
	}

	@AfterEach
	void tearDown() {
		this.context.close();
	}

	@Test
	void filteredMessagesCountAsProcessed() {
		PgqueMessageListenerContainer container = this.context.start(Filtered.class, Filters.class)
			.getListenerContainer("f1.f");
		this.context.send("f1", "one", "keep 1", "drop 2", "broken 3", "keep 4");
		awaitCalls(calls, "keep 1", "keep 4");
		await().until(() -> container.getCounters().batchesSettled() == 1);
		await().untilAsserted(() -> assertThat(container.getCounters().skipped()).isOne());
		await().untilAsserted(() -> assertThat(container.getCounters().retried()).isOne());
		calls.clear();
		this.context.send("f1", "several", "keep 1", "drop 2", "keep 3", "drop 4");
		awaitCalls(calls, "[keep 1, keep 3]");
		this.context.send("f1", "unfiltered", "drop");
		awaitCalls(calls, "[keep 1, keep 3]", "drop");
	}

	@Test
	void customizerChangesOneContainer() {
		var registry = this.context.start(Customized.class, Filters.class);
		var properties = registry.getListenerContainer("f2.f").getContainerProperties();
		assertThat(properties.getPageSize()).isEqualTo(3);
		assertThat(registry.getListenerContainer("f3.f").getContainerProperties().getPageSize()).isEqualTo(1000);
		this.context.send("f2", "t", "x");
		await().until(() -> registry.getListenerContainer("f2.f").getCounters().retried() == 1);
		assertThat(properties.getBackOff().delay()).isEqualTo(Duration.ofHours(3));
	}

	@Test
	void beansThatAreNoneAreRefused() {
		this.context.refused(NoFilter.class, "NoFilter.handle(String)", "'filter'", "gives no PgqueMessageFilter");
		this.context.refused(NoCustomizer.class, "NoCustomizer.handle(String)", "'containerCustomizer'",
				"gives no PgqueContainerCustomizer");
	}

	@Test
	void interceptorsAreCalledInOrderAndBackInReverse() {
		this.context.start(Intercepted.class, Interceptors.class);
		this.context.send("f4", "one", "fine");
		awaitCalls(calls, "a before fine", "b before fine", "handled fine", "b success fine", "a success fine",
				"b after fine", "a after fine");
		calls.clear();
		this.context.send("f4", "one", "fail");
		awaitCalls(calls, "a before fail", "b before fail", "b failure fail: handler", "a failure fail: handler",
				"b after fail", "a after fail", "error handler fail: handler");
		calls.clear();
		this.context.send("f4", "several", "x", "y");
		awaitCalls(calls, "batch before 2", "several 2", "batch success 2", "batch after 2");
	}

	@Test
	void failureOfAnInterceptorIsTheMessagesFailure(CapturedOutput output) {
		this.context.start(Intercepted.class, Interceptors.class);
		this.context.send("f4", "one", "fail before");
		awaitCalls(calls, "a before fail before", "a failure fail before: interceptor", "a after fail before",
				"error handler fail before: interceptor");
		calls.clear();
		this.context.send("f4", "one", "fail success");
		awaitCalls(calls, "a before fail success", "b before fail success", "handled fail success",
				"b failure fail success: interceptor", "a failure fail success: interceptor", "b after fail success",
				"a after fail success", "error handler fail success: interceptor");
		calls.clear();
		this.context.send("f4", "one", "fail after");
		awaitCalls(calls, "a before fail after", "b before fail after", "handled fail after", "b success fail after",
				"a success fail after", "a after fail after");
		assertThat(output).contains("failed after the handler had ended; that changes nothing");
	}

	@Configuration(proxyBeanMethods = false)
	static class Filters {

		@Bean
		PgqueMessageFilter keep() {
			return (message) -> {
				String payload = String.valueOf(message.payload());
				if (payload.startsWith("broken")) {
					throw new IllegalStateException("the filter failed");
				}
				return payload.startsWith("keep");
			};
		}

		@Bean
		PgqueContainerCustomizer small() {
			return (identity, properties) -> {
				assertThat(identity.queue()).isEqualTo("f2");
				properties.setPageSize(3);
				properties.setBackOff(new BackOffSettings(Duration.ofHours(3), 1, Duration.ofHours(3), Duration.ZERO));
			};
		}

	}

	static class Filtered {

		@PgqueListener(queue = "f1", consumer = "f", types = "one", filter = "keep")
		void one(String payload) {
			calls.add(payload);
		}

		@PgqueListener(queue = "f1", consumer = "f", types = "several", filter = "#{@keep}")
		void several(List<String> payloads) {
			calls.add(payloads.toString());
		}

		@PgqueListener(queue = "f1", consumer = "f", types = "unfiltered")
		void unfiltered(String payload) {
			calls.add(payload);
		}

	}

	static class Customized {

		@PgqueListener(queue = "f2", consumer = "f", containerCustomizer = "small")
		void customized(String payload) {
			throw new IllegalStateException("to be retried");
		}

		@PgqueListener(queue = "f3", consumer = "f")
		void plain(String payload) {
		}

	}

	static class NoFilter {

		@PgqueListener(queue = "f", consumer = "f", filter = "nowhere")
		void handle(String payload) {
		}

	}

	static class NoCustomizer {

		@PgqueListener(queue = "f", consumer = "f", containerCustomizer = "nowhere")
		void handle(String payload) {
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class Interceptors {

		@Bean
		static BeanPostProcessor interceptors() {
			return new BeanPostProcessor() {

				@Override
				public Object postProcessBeforeInitialization(Object bean, String beanName) {
					if (bean instanceof DefaultPgqueListenerContainerFactory factory) {
						factory.setMessageInterceptors(List.of(new Recording("a"), new Recording("b")));
						factory.setBatchInterceptors(List.of(new RecordingBatches()));
					}
					return bean;
				}

			};
		}

		@Bean
		PgqueErrorHandler recordingErrorHandler() {
			return (failure, message, context) -> {
				calls.add("error handler " + message.payload() + ": " + failure.getMessage());
				return FailureAction.skip();
			};
		}

	}

	static class Intercepted {

		@PgqueListener(queue = "f4", consumer = "f", types = "one", errorHandler = "recordingErrorHandler")
		void handle(String payload) {
			if ("fail".equals(payload)) {
				throw new IllegalStateException("handler");
			}
			calls.add("handled " + payload);
		}

		@PgqueListener(queue = "f4", consumer = "f", types = "several")
		void several(List<PgqueMessage> messages) {
			calls.add("several " + messages.size());
		}

	}

	record Recording(String name) implements PgqueMessageInterceptor {

		private void record(String step, ReceivedMessage message) {
			if (this.name.equals("b") && message.payload().equals("fail " + step)) {
				throw new IllegalStateException("interceptor");
			}
			calls.add(this.name + " " + step + " " + message.payload());
		}

		@Override
		public void before(ReceivedMessage message) {
			record("before", message);
		}

		@Override
		public void success(ReceivedMessage message) {
			record("success", message);
		}

		@Override
		public void failure(ReceivedMessage message, Throwable failure) {
			calls.add(this.name + " failure " + message.payload() + ": " + failure.getMessage());
		}

		@Override
		public void after(ReceivedMessage message) {
			record("after", message);
		}

	}

	record RecordingBatches() implements PgqueBatchInterceptor {

		@Override
		public void before(List<? extends ReceivedMessage> messages) {
			calls.add("batch before " + messages.size());
		}

		@Override
		public void success(List<? extends ReceivedMessage> messages) {
			calls.add("batch success " + messages.size());
		}

		@Override
		public void failure(List<? extends ReceivedMessage> messages, Throwable failure) {
			calls.add("batch failure " + messages.size());
		}

		@Override
		public void after(List<? extends ReceivedMessage> messages) {
			calls.add("batch after " + messages.size());
		}

	}

}
