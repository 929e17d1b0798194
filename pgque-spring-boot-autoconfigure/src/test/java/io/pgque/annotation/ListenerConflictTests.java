package io.pgque.annotation;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.config.PgqueListenerBeanNames;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.core.PgqueAdmin;
import io.pgque.core.PgqueMessage;
import io.pgque.core.SimpleEventTypeResolver;
import io.pgque.listener.DefaultPgqueErrorHandler;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.MapPropertySource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

/**
 * Tests for how listeners of one consumer share a container, and for what can't work.
 */
@PgqueDatabase
class ListenerConflictTests {

	private static final List<String> calls = new CopyOnWriteArrayList<>();

	private final TestDatabase database;

	private AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();

	private String queue = "c-queue";

	private String consumer = "c-consumer";

	ListenerConflictTests(TestDatabase database) {
		this.database = database;
		calls.clear();
	}

	@AfterEach
	void tearDown() {
		this.context.close();
	}

	private PgqueListenerEndpointRegistry start(Class<?>... classes) {
		this.context = new AnnotationConfigApplicationContext();
		this.context.getEnvironment()
			.getPropertySources()
			.addFirst(new MapPropertySource("test",
					java.util.Map.of("test-queue", this.queue, "test-consumer", this.consumer)));
		this.context.getBeanFactory().registerSingleton("database", this.database);
		this.context.register(Infrastructure.class);
		this.context.register(classes);
		this.context.refresh();
		return this.context.getBean(PgqueListenerEndpointRegistry.class);
	}

	private void refused(Class<?> type, String... parts) {
		assertThatExceptionOfType(InvalidListenerException.class).isThrownBy(() -> start(type))
			.satisfies((ex) -> assertThat(ex.getMessage()).contains(parts))
			.satisfies((ex) -> assertThat(ex.getRemedy()).isNotEmpty());
		assertThat(Thread.getAllStackTraces().keySet()).noneMatch((thread) -> thread.getName().startsWith("pgque-c"));
	}

	private static String method(Class<?> type, String name) {
		return type.getName() + "." + name + "(";
	}

	@Test
	void methodsOfOneConsumerShareAContainerAndTakeTheTypesOfTheirPayloads() {
		PgqueListenerEndpointRegistry registry = start(ByPayload.class, OtherTypes.class);
		assertThat(registry.getListenerContainerIds()).containsExactly("c1.shared");
		PgqueClient client = new PgqueClient(this.database.dataSource());
		for (String type : List.of("Placed", "Cancelled", "default", "explicit", "unknown", "Placed")) {
			client.send("c1", type, "{\"id\":1}", EventExtras.NONE);
		}
		client.tick(List.of("c1"));
		await().atMost(Duration.ofSeconds(10))
			.until(() -> registry.getListenerContainer("c1.shared").getCounters().retried() == 1);
		assertThat(calls).containsExactly("Placed[id=1]", "Cancelled[id=1]", "text {\"id\":1}", "explicit {\"id\":1}",
				"Placed[id=1]");
	}

	@Test
	void consumerNamesFallBackToIdAndThenToTheDefault() {
		PgqueListenerEndpointRegistry registry = start(Fallbacks.class);
		assertThat(registry.getListenerContainerIds()).containsExactlyInAnyOrder("c2.explicit", "by-id",
				"c4.default-consumer");
		assertThat(registry.getListenerContainer("by-id").getConsumer()).isEqualTo("by-id");
	}

	@Test
	void noConsumerName() {
		assertThatExceptionOfType(InvalidListenerException.class).isThrownBy(() -> {
			this.context = new AnnotationConfigApplicationContext();
			this.context.getBeanFactory().registerSingleton("database", this.database);
			this.context.register(InfrastructureWithoutDefault.class, NoConsumer.class);
			this.context.refresh();
		})
			.withMessageContaining(method(NoConsumer.class, "handle"))
			.withMessageContaining("has no consumer name")
			.withMessageContaining("spring.application.name");
	}

	@Test
	void noQueue() {
		refused(NoQueue.class, method(NoQueue.class, "handle"), "names no queue");
	}

	@Test
	void sameType() {
		refused(SameType.class, method(SameType.class, "first"), method(SameType.class, "second"),
				"both take event type 'b'");
	}

	@Test
	void samePayloadClass() {
		refused(SamePayload.class, method(SamePayload.class, "first"), method(SamePayload.class, "second"),
				"both take event type 'Placed'");
	}

	@Test
	void untypedWithoutPayloadClass() {
		refused(NoPayloadClass.class, method(NoPayloadClass.class, "first"), method(NoPayloadClass.class, "second"),
				"state no 'types'");
	}

	@Test
	void differentIds() {
		refused(DifferentIds.class, method(DifferentIds.class, "first"), method(DifferentIds.class, "second"),
				"disagree about its id: one, two");
	}

	@Test
	void sameIds() {
		refused(SameIds.class, method(SameIds.class, "first"), method(SameIds.class, "second"),
				"have the same id 'same'");
	}

	@Test
	void differentFactoriesErrorHandlersAndAutoStartup() {
		refused(DifferentFactories.class, method(DifferentFactories.class, "first"),
				method(DifferentFactories.class, "second"), "containerFactory");
		refused(DifferentErrorHandlers.class, method(DifferentErrorHandlers.class, "first"),
				method(DifferentErrorHandlers.class, "second"), "errorHandler");
		refused(DifferentAutoStartup.class, method(DifferentAutoStartup.class, "first"),
				method(DifferentAutoStartup.class, "second"), "autoStartup: true, false");
	}

	@Test
	void attributesThatResolveToNothingUseful() {
		refused(NoSuchErrorHandler.class, method(NoSuchErrorHandler.class, "handle"), "'errorHandler'",
				"'nowhere', which gives no PgqueErrorHandler");
		refused(NoSuchFactory.class, method(NoSuchFactory.class, "handle"), "'containerFactory'");
		refused(NoSuchBean.class, method(NoSuchBean.class, "handle"), "'queue'", "#{@noSuchBean}", "can't be resolved");
		refused(NoTruth.class, method(NoTruth.class, "handle"), "'autoStartup'", "'perhaps'");
		refused(EmptyType.class, method(EmptyType.class, "handle"), "'types'", "empty element");
	}

	@Test
	void methodThatAProxyDoesNotHave() {
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> start(NotInTheInterface.class, InterfaceProxies.class))
			.withMessageContaining(method(NotInTheInterface.class, "handle"))
			.withMessageContaining("proxy");
	}

	@ParameterizedTest
	@ValueSource(strings = { "123456789012345678901234567890123456789012345678901234567", "Mixed-Case.dot",
			"with \"quote'", "\u00e9\uD83D\uDE00" })
	void unusualQueueNames(String queue) {
		this.queue = queue;
		this.consumer = "consumer of " + queue;
		start(Named.class);
		PgqueClient client = new PgqueClient(this.database.dataSource());
		client.send(queue, "t", "a", EventExtras.NONE);
		client.tick(List.of(queue));
		await().atMost(Duration.ofSeconds(10)).untilAsserted(() -> assertThat(calls).containsExactly("named a"));
	}

	@ParameterizedTest
	@ValueSource(strings = { "1234567890123456789012345678901234567890123456789012345678",
			"\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
			"nul\0" })
	void impossibleQueueNames(String queue) {
		this.queue = queue;
		refused(Named.class, method(Named.class, "handle"));
	}

	@ParameterizedTest
	@ValueSource(strings = { "slot#1", "nul\0" })
	void impossibleConsumerNames(String consumer) {
		this.consumer = consumer;
		refused(Named.class, method(Named.class, "handle"));
	}

	@Test
	void missingQueueThatMayNotBeCreated() {
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> start(NoAutoCreate.class, Named.class))
			.withMessageContaining(method(Named.class, "handle"))
			.withMessageContaining("'c-queue'")
			.withMessageContaining("pgque.create_queue('c-queue')");
	}

	record Placed(long id) {
	}

	record Cancelled(long id) {
	}

	static class InfrastructureBase {

		DefaultPgqueListenerContainerFactory create(TestDatabase database, boolean autoCreate) {
			PgqueAdmin admin = new PgqueAdmin(database.dataSource(), List.of());
			admin.setAutoCreate(autoCreate);
			DefaultPgqueListenerContainerFactory factory = new DefaultPgqueListenerContainerFactory(
					new PgqueClient(database.dataSource()), admin, new Jackson2MessageConverter(),
					new SimpleEventTypeResolver());
			factory.getContainerProperties().setPollInterval(Duration.ofMillis(20));
			return factory;
		}

	}

	@Configuration(proxyBeanMethods = false)
	@EnablePgque
	static class Infrastructure extends InfrastructureBase {

		@Bean(PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY)
		DefaultPgqueListenerContainerFactory factory(TestDatabase database) {
			DefaultPgqueListenerContainerFactory factory = create(database, true);
			factory.setDefaultConsumer("default-consumer");
			return factory;
		}

		@Bean
		DefaultPgqueListenerContainerFactory otherFactory(TestDatabase database) {
			return create(database, true);
		}

		@Bean
		PgqueErrorHandler oneErrorHandler() {
			return new DefaultPgqueErrorHandler();
		}

		@Bean
		PgqueErrorHandler anotherErrorHandler() {
			return new DefaultPgqueErrorHandler();
		}

	}

	@Configuration(proxyBeanMethods = false)
	@EnablePgque
	static class InfrastructureWithoutDefault extends InfrastructureBase {

		@Bean(PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY)
		DefaultPgqueListenerContainerFactory factory(TestDatabase database) {
			return create(database, true);
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class NoAutoCreate extends InfrastructureBase {

		@Bean(PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY)
		DefaultPgqueListenerContainerFactory factory(TestDatabase database) {
			return create(database, false);
		}

	}

	static class ByPayload {

		@PgqueListener(queue = "c1", consumer = "shared")
		void placed(Placed event) {
			calls.add(event.toString());
		}

		@PgqueListener(queue = "c1", consumer = "shared")
		void cancelled(Cancelled event) {
			calls.add(event.toString());
		}

	}

	static class OtherTypes {

		@PgqueListener(queue = "c1", consumer = "shared")
		void text(String text) {
			calls.add("text " + text);
		}

		@PgqueListener(queue = "c1", consumer = "shared", types = "explicit")
		void explicit(String text) {
			calls.add("explicit " + text);
		}

	}

	static class Fallbacks {

		@PgqueListener(queue = "c2", consumer = "explicit")
		void explicit(String payload) {
		}

		@PgqueListener(queue = "c3", id = "by-id")
		void byId(String payload) {
		}

		@PgqueListener(queue = "c4")
		void byDefault(String payload) {
		}

	}

	static class NoConsumer {

		@PgqueListener("c5")
		void handle(String payload) {
		}

	}

	static class NoQueue {

		@PgqueListener(consumer = "c")
		void handle(String payload) {
		}

	}

	static class SameType {

		@PgqueListener(queue = "c6", consumer = "c", types = { "a", "b" })
		void first(String payload) {
		}

		@PgqueListener(queue = "c6", consumer = "c", types = { "b", "c" })
		void second(String payload) {
		}

	}

	static class SamePayload {

		@PgqueListener(queue = "c6", consumer = "c")
		void first(Placed payload) {
		}

		@PgqueListener(queue = "c6", consumer = "c")
		void second(Placed payload) {
		}

	}

	static class NoPayloadClass {

		@PgqueListener(queue = "c6", consumer = "c")
		void first(Placed payload) {
		}

		@PgqueListener(queue = "c6", consumer = "c")
		void second(PgqueMessage message) {
		}

	}

	static class DifferentIds {

		@PgqueListener(queue = "c6", consumer = "c", types = "a", id = "one")
		void first(String payload) {
		}

		@PgqueListener(queue = "c6", consumer = "c", types = "b", id = "two")
		void second(String payload) {
		}

	}

	static class SameIds {

		@PgqueListener(queue = "c6", consumer = "c", id = "same")
		void first(String payload) {
		}

		@PgqueListener(queue = "c6", consumer = "d", id = "same")
		void second(String payload) {
		}

	}

	static class DifferentFactories {

		@PgqueListener(queue = "c6", consumer = "c", types = "a")
		void first(String payload) {
		}

		@PgqueListener(queue = "c6", consumer = "c", types = "b", containerFactory = "otherFactory")
		void second(String payload) {
		}

	}

	static class DifferentErrorHandlers {

		@PgqueListener(queue = "c6", consumer = "c", types = "a", errorHandler = "oneErrorHandler")
		void first(String payload) {
		}

		@PgqueListener(queue = "c6", consumer = "c", types = "b", errorHandler = "#{@anotherErrorHandler}")
		void second(String payload) {
		}

	}

	static class DifferentAutoStartup {

		@PgqueListener(queue = "c6", consumer = "c", types = "a", autoStartup = "true")
		void first(String payload) {
		}

		@PgqueListener(queue = "c6", consumer = "c", types = "b", autoStartup = "false")
		void second(String payload) {
		}

	}

	static class NoSuchErrorHandler {

		@PgqueListener(queue = "c6", consumer = "c", errorHandler = "nowhere")
		void handle(String payload) {
		}

	}

	static class NoSuchFactory {

		@PgqueListener(queue = "c6", consumer = "c", containerFactory = "oneErrorHandler")
		void handle(String payload) {
		}

	}

	static class NoSuchBean {

		@PgqueListener(queue = "#{@noSuchBean}", consumer = "c")
		void handle(String payload) {
		}

	}

	static class NoTruth {

		@PgqueListener(queue = "c6", consumer = "c", autoStartup = "perhaps")
		void handle(String payload) {
		}

	}

	static class EmptyType {

		@PgqueListener(queue = "c6", consumer = "c", types = "")
		void handle(String payload) {
		}

	}

	interface Marker {

		void mark();

	}

	static class NotInTheInterface implements Marker {

		@Override
		public void mark() {
		}

		@PgqueListener(queue = "c6", consumer = "c")
		public void handle(String payload) {
		}

	}

	static class InterfaceProxies implements BeanPostProcessor {

		@Override
		public Object postProcessAfterInitialization(Object bean, String beanName) {
			if (!(bean instanceof Marker)) {
				return bean;
			}
			ProxyFactory factory = new ProxyFactory(bean);
			factory.addAdvice((MethodInterceptor) (invocation) -> invocation.proceed());
			return factory.getProxy();
		}

	}

	static class Named {

		@PgqueListener(queue = "#{environment['test-queue']}", consumer = "#{environment['test-consumer']}")
		void handle(String payload) {
			calls.add("named " + payload);
		}

	}

}
