package io.pgque.annotation;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.config.PgqueListenerConfigurer;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.config.SimplePgqueListenerEndpoint;
import io.pgque.core.PgqueMessage;
import io.pgque.listener.PgqueBatchListener;
import io.pgque.listener.PgqueMessageListener;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.AliasFor;

import static io.pgque.annotation.ListenerContext.awaitCalls;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for listeners that are declared on classes, or by code.
 */
@PgqueDatabase
class ClassLevelListenerTests {

	private static final List<String> calls = new CopyOnWriteArrayList<>();

	private final ListenerContext context;

	ClassLevelListenerTests(TestDatabase database) {
		this.context = new ListenerContext(database);
		calls.clear();
	}

	@AfterEach
	void tearDown() {
		this.context.close();
	}

	@Test
	void methodsOfAClassShareItsContainer() {
		PgqueListenerEndpointRegistry registry = this.context.start(Billing.class);
		assertThat(registry.getListenerContainerIds()).containsExactly("bills");
		this.context.send("k1", "Placed", "{\"id\":1}");
		this.context.send("k1", "order.cancelled", "x");
		this.context.send("k1", "Paid", "{\"id\":2}");
		awaitCalls(calls, "Placed[id=1]", "cancelled x", "Paid[id=2]");
	}

	@Test
	void proxiedClass() {
		this.context.start(Billing.class, ClassProxies.class);
		this.context.send("k1", "Placed", "{\"id\":1}");
		awaitCalls(calls, "Placed[id=1]");
	}

	@Test
	void composedAndRepeatedAnnotationsOnAClass() {
		PgqueListenerEndpointRegistry registry = this.context.start(Composed.class, Repeated.class);
		assertThat(registry.getListenerContainerIds()).containsExactlyInAnyOrder("k2.audit", "k3.one", "k3.two");
		this.context.send("k2", "t", "a");
		awaitCalls(calls, "composed a");
		this.context.send("k3", "t", "b");
		awaitCalls(calls, "composed a", "repeated b", "repeated b");
	}

	@Test
	void annotationOfASuperclassCounts() {
		this.context.start(Inheriting.class);
		this.context.send("k4", "t", "a");
		awaitCalls(calls, "inherited a");
	}

	@Test
	void whatDoesNotFitIsRefused() {
		this.context.refused(NoHandlers.class, NoHandlers.class.getName(), "no method with @PgqueHandler");
		this.context.refused(NoListener.class, "NoListener.handle(String)", "its class has no @PgqueListener");
		this.context.refused(Both.class, "Both.handle(String)", "both @PgqueHandler and @PgqueListener");
		this.context.refused(TypesOnClass.class, TypesOnClass.class.getName(), "'types'");
		this.context.refused(SameType.class, "SameType.first(String)", "SameType.second(String)",
				"both take event type 'a'");
	}

	@Test
	void endpointsByCodeInTheOrderOfTheirConfigurers() {
		PgqueListenerEndpointRegistry registry = this.context.start(Programmatic.class, Annotated.class);
		assertThat(registry.getListenerContainerIds()).containsExactlyInAnyOrder("k5.shared", "several");
		this.context.send("k5", "a", "1");
		this.context.send("k5", "b", "2");
		awaitCalls(calls, "annotated 1", "by code 2");
		this.context.send("k6", "t", "3", "4");
		awaitCalls(calls, "annotated 1", "by code 2", "2 messages");
		assertThat(registry.getListenerContainer("several").isAutoStartup()).isTrue();
	}

	@Test
	void conflictsOfEndpointsByCodeNameBoth() {
		this.context.refused(ConflictByCode.class, "registered for queue 'k7', id 'one'",
				"registered for queue 'k7', id 'two'", "disagree about its id");
	}

	record Placed(long id) {
	}

	record Paid(long id) {
	}

	@PgqueListener(queue = "k1", consumer = "billing", id = "bills")
	static class Billing {

		@PgqueHandler
		void placed(Placed event) {
			calls.add(event.toString());
		}

		@PgqueHandler
		void paid(Paid event) {
			calls.add(event.toString());
		}

		@PgqueHandler("order.cancelled")
		void cancelled(PgqueMessage message) {
			calls.add("cancelled " + message.payload());
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class ClassProxies {

		@Bean
		static BeanPostProcessor proxies() {
			return new BeanPostProcessor() {

				@Override
				public Object postProcessAfterInitialization(Object bean, String beanName) {
					if (!(bean instanceof Billing)) {
						return bean;
					}
					ProxyFactory factory = new ProxyFactory(bean);
					factory.setProxyTargetClass(true);
					return factory.getProxy();
				}

			};
		}

	}

	@Retention(RetentionPolicy.RUNTIME)
	@PgqueListener(queue = "unused")
	@interface Audit {

		@AliasFor(annotation = PgqueListener.class, attribute = "queue")
		String from();

		@AliasFor(annotation = PgqueListener.class, attribute = "consumer")
		String by() default "audit";

	}

	@Retention(RetentionPolicy.RUNTIME)
	@PgqueHandler
	@interface Handles {

	}

	@Audit(from = "k2")
	static class Composed {

		@Handles
		void handle(String payload) {
			calls.add("composed " + payload);
		}

	}

	@PgqueListener(queue = "k3", consumer = "one")
	@PgqueListener(queue = "k3", consumer = "two")
	static class Repeated {

		@PgqueHandler
		void handle(String payload) {
			calls.add("repeated " + payload);
		}

	}

	@PgqueListener(queue = "k4", consumer = "k")
	abstract static class Base {

		@PgqueHandler
		void handle(String payload) {
			calls.add("inherited " + payload);
		}

	}

	static class Inheriting extends Base {

	}

	@PgqueListener(queue = "k", consumer = "k")
	static class NoHandlers {

	}

	static class NoListener {

		@PgqueHandler
		void handle(String payload) {
		}

	}

	@PgqueListener(queue = "k", consumer = "k")
	static class Both {

		@PgqueHandler
		@PgqueListener(queue = "k", consumer = "k")
		void handle(String payload) {
		}

	}

	@PgqueListener(queue = "k", consumer = "k", types = "a")
	static class TypesOnClass {

		@PgqueHandler
		void handle(String payload) {
		}

	}

	@PgqueListener(queue = "k", consumer = "k")
	static class SameType {

		@PgqueHandler("a")
		void first(String payload) {
		}

		@PgqueHandler(types = { "b", "a" })
		void second(String payload) {
		}

	}

	static class Annotated {

		@PgqueListener(queue = "k5", consumer = "shared", types = "a")
		void handle(String payload) {
			calls.add("annotated " + payload);
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class Programmatic {

		@Bean
		PgqueListenerConfigurer shared() {
			return (registrar) -> {
				SimplePgqueListenerEndpoint endpoint = new SimplePgqueListenerEndpoint("k5",
						(PgqueMessageListener) (message) -> calls.add("by code " + message.payload()));
				endpoint.setConsumer("shared");
				endpoint.setTypes(List.of("b"));
				registrar.registerEndpoint(endpoint);
			};
		}

		@Bean
		PgqueListenerConfigurer several() {
			return (registrar) -> {
				SimplePgqueListenerEndpoint endpoint = new SimplePgqueListenerEndpoint("k6",
						(PgqueBatchListener) (batch) -> calls.add(batch.messages().size() + " messages"));
				endpoint.setId("several");
				registrar.registerEndpoint(endpoint);
			};
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class ConflictByCode {

		@Bean
		PgqueListenerConfigurer conflict() {
			return (registrar) -> List.of("one", "two").forEach((id) -> {
				SimplePgqueListenerEndpoint endpoint = new SimplePgqueListenerEndpoint("k7",
						(PgqueMessageListener) (message) -> {
						});
				endpoint.setId(id);
				endpoint.setConsumer("k");
				registrar.registerEndpoint(endpoint);
			});
		}

	}

}
