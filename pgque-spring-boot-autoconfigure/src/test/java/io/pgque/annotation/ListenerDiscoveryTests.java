package io.pgque.annotation;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.config.PgqueListenerBeanNames;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.core.PgqueAdmin;
import io.pgque.core.SimpleEventTypeResolver;
import io.pgque.listener.PgqueMessageListenerContainer;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import jakarta.annotation.PostConstruct;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.ObjectFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.context.support.SimpleThreadScope;
import org.springframework.core.annotation.AliasFor;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.task.SyncTaskExecutor;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests for which methods of which beans become listeners.
 */
@PgqueDatabase
class ListenerDiscoveryTests {

	private static final List<String> calls = new CopyOnWriteArrayList<>();

	private final TestDatabase database;

	private final PgqueClient client;

	private AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();

	ListenerDiscoveryTests(TestDatabase database) {
		this.database = database;
		this.client = new PgqueClient(database.dataSource());
		calls.clear();
	}

	@AfterEach
	void tearDown() {
		this.context.close();
		assertThat(Thread.getAllStackTraces().keySet()).noneMatch((thread) -> thread.getName().startsWith("pgque-q"));
	}

	private PgqueListenerEndpointRegistry start(Class<?>... classes) {
		this.context = new AnnotationConfigApplicationContext();
		this.context.getEnvironment()
			.getPropertySources()
			.addFirst(new MapPropertySource("test", Map.of("queue", "q-property", "on", "false")));
		this.context.getBeanFactory().registerScope("thread", new SimpleThreadScope());
		this.context.getBeanFactory().registerScope("refresh", new RefreshScope());
		this.context.getBeanFactory().registerSingleton("database", this.database);
		this.context.register(Infrastructure.class);
		this.context.register(classes);
		this.context.refresh();
		return this.context.getBean(PgqueListenerEndpointRegistry.class);
	}

	private void send(String queue, String type, String payload) {
		this.client.send(queue, type, payload, EventExtras.NONE);
		this.client.tick(List.of(queue));
	}

	private static void awaitCalls(String... expected) {
		await().atMost(Duration.ofSeconds(10)).untilAsserted(() -> assertThat(calls).containsExactly(expected));
	}

	@Test
	void packagePrivateMethodOfAPlainBean() {
		PgqueListenerEndpointRegistry registry = start(Plain.class);
		assertThat(registry.getListenerContainerIds()).containsExactly("q1.plain");
		send("q1", "t", "a");
		awaitCalls("plain a");
	}

	@Test
	void overloadsAreDistinctAndKeepTheirIdsBehindAProxy() {
		PgqueListenerEndpointRegistry registry = start(Overloaded.class);
		assertThat(registry.getListenerContainerIds()).containsExactly("q2.overloaded");
		send("q2", "text", "a");
		send("q2", "number", "7");
		awaitCalls("text a", "number 7");
		this.context.close();
		calls.clear();
		registry = start(Overloaded.class, ClassProxies.class);
		assertThat(registry.getListenerContainerIds()).containsExactly("q2.overloaded");
		send("q2", "text", "b");
		awaitCalls("intercepted", "text b");
	}

	@Test
	void jdkProxy() {
		start(Interfaced.class, InterfaceProxies.class);
		assertThat(this.context.getBean(Greeter.class)).isNotInstanceOf(Interfaced.class);
		send("q3", "t", "a");
		awaitCalls("intercepted", "interfaced a");
	}

	@Test
	void bridgeMethodIsNoSecondListener() {
		PgqueListenerEndpointRegistry registry = start(Bridged.class);
		assertThat(registry.getListenerContainers()).hasSize(1);
		send("q4", "Order", "{\"id\":1}");
		awaitCalls("bridged Order[id=1]");
	}

	@Test
	void methodOfAGenericSuperclass() {
		PgqueListenerEndpointRegistry registry = start(Inheriting.class);
		assertThat(registry.getListenerContainers()).hasSize(1);
		send("q5", "Order", "{\"id\":1}");
		awaitCalls("inherited Order[id=1]");
	}

	@Test
	void composedAnnotationWithAliases() {
		PgqueListenerEndpointRegistry registry = start(Composed.class);
		assertThat(registry.getListenerContainerIds()).containsExactly("q6.composed");
		send("q6", "wanted", "a");
		send("q6", "other", "b");
		awaitCalls("composed a");
	}

	@Test
	void repeatedAnnotationMakesSeveralListeners() {
		PgqueListenerEndpointRegistry registry = start(Repeated.class);
		assertThat(registry.getListenerContainerIds()).containsExactlyInAnyOrder("q7.repeated", "q8.repeated");
		send("q7", "t", "a");
		awaitCalls("repeated a");
		send("q8", "t", "b");
		awaitCalls("repeated a", "repeated b");
	}

	@Test
	void placeholdersAndExpressions() {
		PgqueListenerEndpointRegistry registry = start(Resolved.class);
		PgqueMessageListenerContainer container = registry.getListenerContainer("id-3");
		assertThat(container).isNotNull();
		assertThat(container.getQueue()).isEqualTo("q-property");
		assertThat(container.getConsumer()).isEqualTo("from-bean");
		assertThat(container.isRunning()).isFalse();
		container.start();
		send("q-property", "a", "1");
		send("q-property", "b", "2");
		send("q-property", "c", "3");
		awaitCalls("resolved 1", "resolved 2");
	}

	@Test
	void lazyBeanIsCreatedForItsListener() {
		start(LazyBean.class);
		send("q9", "t", "a");
		awaitCalls("created", "lazy a");
	}

	@Test
	void prototypeBeanIsCreatedForEachMessage() {
		PgqueListenerEndpointRegistry registry = start(PrototypeBean.class);
		assertThat(registry.getListenerContainers()).hasSize(1);
		assertThat(calls).isEmpty();
		this.context.getBean(PrototypeBean.class);
		assertThat(registry.getListenerContainers()).hasSize(1);
		send("q10", "t", "a");
		send("q10", "t", "b");
		awaitCalls("created", "created", "prototype a", "created", "prototype b");
	}

	@Test
	void scopedProxyIsTheListener() {
		PgqueListenerEndpointRegistry registry = start(ScopedBean.class);
		assertThat(registry.getListenerContainers()).hasSize(1);
		send("q11", "t", "a");
		awaitCalls("scoped a");
		assertThat(registry.getListenerContainers()).hasSize(1);
	}

	/**
	 * As a scope that is refreshed does it: the next call creates the target anew.
	 */
	@Test
	void scopedProxyWhoseTargetIsCreatedAnewStaysTheListener() {
		PgqueListenerEndpointRegistry registry = start(RefreshedBean.class);
		send("q17", "t", "a");
		awaitCalls("created", "refreshed a");
		((RefreshScope) this.context.getBeanFactory().getRegisteredScope("refresh")).refresh();
		send("q17", "t", "b");
		awaitCalls("created", "refreshed a", "created", "refreshed b");
		assertThat(registry.getListenerContainerIds()).containsExactly("q17.refreshed");
	}

	@Test
	void factoryMethodWithAnInterfaceAsReturnType() {
		start(FactoryMethods.class);
		send("q12", "t", "a");
		awaitCalls("hidden a");
	}

	@Test
	void lazyFactoryMethodWithAnInterfaceAsReturnTypeIsFoundWhenTheBeanIsCreated() {
		PgqueListenerEndpointRegistry registry = start(LazyFactoryMethods.class);
		assertThat(registry.getListenerContainers()).isEmpty();
		this.context.getBean("hidden");
		assertThat(registry.getListenerContainers()).hasSize(1);
		send("q12", "t", "a");
		awaitCalls("hidden a");
	}

	@Test
	void productOfAFactoryBean() {
		start(ProductFactory.class);
		send("q13", "t", "a");
		awaitCalls("product a");
	}

	@Test
	void beanWithAnotherAsynchronousMethod() {
		start(WithAsync.class, AsyncConfiguration.class);
		send("q14", "t", "a");
		awaitCalls("with async a");
	}

	@Test
	void lambdaBeanIsNoListener() {
		assertThat(start(Lambdas.class).getListenerContainers()).isEmpty();
	}

	@Test
	void privateAndStaticMethods() {
		start(PrivateAndStatic.class);
		send("q15", "t", "a");
		awaitCalls("private a");
		send("q16", "t", "b");
		awaitCalls("private a", "static b");
	}

	record Order(long id) {
	}

	@Configuration(proxyBeanMethods = false)
	@EnablePgque
	static class Infrastructure {

		@Bean(PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY)
		DefaultPgqueListenerContainerFactory factory(TestDatabase database) {
			DefaultPgqueListenerContainerFactory factory = new DefaultPgqueListenerContainerFactory(
					new PgqueClient(database.dataSource()), new PgqueAdmin(database.dataSource(), List.of()),
					new Jackson2MessageConverter(), new SimpleEventTypeResolver());
			factory.getContainerProperties().setPollInterval(Duration.ofMillis(20));
			return factory;
		}

	}

	static class Plain {

		@PgqueListener(queue = "q1", consumer = "plain")
		void handle(String payload) {
			calls.add("plain " + payload);
		}

	}

	static class Overloaded {

		@PgqueListener(queue = "q2", consumer = "overloaded", types = "text")
		void handle(String payload) {
			calls.add("text " + payload);
		}

		@PgqueListener(queue = "q2", consumer = "overloaded", types = "number")
		void handle(int payload) {
			calls.add("number " + payload);
		}

	}

	interface Greeter {

		void greet(String payload);

	}

	static class Interfaced implements Greeter {

		@Override
		@PgqueListener(queue = "q3", consumer = "interfaced")
		public void greet(String payload) {
			calls.add("interfaced " + payload);
		}

	}

	abstract static class Proxies implements BeanPostProcessor {

		private final boolean proxyTargetClass;

		Proxies(boolean proxyTargetClass) {
			this.proxyTargetClass = proxyTargetClass;
		}

		@Override
		public Object postProcessAfterInitialization(Object bean, String beanName) {
			if (!(bean instanceof Interfaced || bean instanceof Overloaded)) {
				return bean;
			}
			ProxyFactory factory = new ProxyFactory(bean);
			factory.setProxyTargetClass(this.proxyTargetClass);
			factory.addAdvice((MethodInterceptor) (invocation) -> {
				calls.add("intercepted");
				return invocation.proceed();
			});
			return factory.getProxy();
		}

	}

	static class ClassProxies extends Proxies {

		ClassProxies() {
			super(true);
		}

	}

	static class InterfaceProxies extends Proxies {

		InterfaceProxies() {
			super(false);
		}

	}

	interface Handler<T> {

		void handle(T payload);

	}

	static class Bridged implements Handler<Order> {

		@Override
		@PgqueListener(queue = "q4", consumer = "bridged")
		public void handle(Order payload) {
			calls.add("bridged " + payload);
		}

	}

	abstract static class GenericBase<T> {

		@PgqueListener(queue = "q5", consumer = "inherited")
		protected void handle(T payload) {
			calls.add("inherited " + payload);
		}

	}

	static class Inheriting extends GenericBase<Order> {

	}

	@Retention(RetentionPolicy.RUNTIME)
	@PgqueListener(consumer = "composed")
	@interface OrderListener {

		@AliasFor(annotation = PgqueListener.class, attribute = "queue")
		String from();

		@AliasFor(annotation = PgqueListener.class)
		String[] types() default {};

	}

	static class Composed {

		@OrderListener(from = "q6", types = "wanted")
		void handle(String payload) {
			calls.add("composed " + payload);
		}

	}

	static class Repeated {

		@PgqueListener(queue = "q7", consumer = "repeated")
		@PgqueListener(queue = "q8", consumer = "repeated")
		void handle(String payload) {
			calls.add("repeated " + payload);
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class Resolved {

		@Bean
		String consumerName() {
			return "from-bean";
		}

		@PgqueListener(value = "${queue}", consumer = "#{@consumerName}", types = "#{{'a', 'b'}}", id = "id-#{1 + 2}",
				autoStartup = "${on}")
		void handle(String payload) {
			calls.add("resolved " + payload);
		}

	}

	@Lazy
	static class LazyBean {

		LazyBean() {
			calls.add("created");
		}

		@PgqueListener(queue = "q9", consumer = "lazy")
		void handle(String payload) {
			calls.add("lazy " + payload);
		}

	}

	@Scope(ConfigurableBeanFactory.SCOPE_PROTOTYPE)
	static class PrototypeBean {

		PrototypeBean() {
			calls.add("created");
		}

		@PgqueListener(queue = "q10", consumer = "prototype")
		void handle(String payload) {
			calls.add("prototype " + payload);
		}

	}

	@Scope(scopeName = "thread", proxyMode = ScopedProxyMode.TARGET_CLASS)
	static class ScopedBean {

		@PgqueListener(queue = "q11", consumer = "scoped")
		void handle(String payload) {
			calls.add("scoped " + payload);
		}

	}

	@Scope(scopeName = "refresh", proxyMode = ScopedProxyMode.TARGET_CLASS)
	static class RefreshedBean {

		@PostConstruct
		void created() {
			calls.add("created");
		}

		@PgqueListener(queue = "q17", consumer = "refreshed")
		void handle(String payload) {
			calls.add("refreshed " + payload);
		}

	}

	static class RefreshScope implements org.springframework.beans.factory.config.Scope {

		private final Map<String, Object> targets = new ConcurrentHashMap<>();

		void refresh() {
			this.targets.clear();
		}

		@Override
		public Object get(String name, ObjectFactory<?> factory) {
			return this.targets.computeIfAbsent(name, (key) -> factory.getObject());
		}

		@Override
		public Object remove(String name) {
			return this.targets.remove(name);
		}

		@Override
		public void registerDestructionCallback(String name, Runnable callback) {
		}

	}

	static class Hidden implements Runnable {

		@Override
		public void run() {
		}

		@PgqueListener(queue = "q12", consumer = "hidden")
		void handle(String payload) {
			calls.add("hidden " + payload);
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class FactoryMethods {

		@Bean
		Runnable hidden() {
			return new Hidden();
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class LazyFactoryMethods {

		@Bean
		@Lazy
		Runnable hidden() {
			return new Hidden();
		}

	}

	static class Product {

		@PgqueListener(queue = "q13", consumer = "product")
		void handle(String payload) {
			calls.add("product " + payload);
		}

	}

	static class ProductFactory implements FactoryBean<Product> {

		@Override
		public Product getObject() {
			return new Product();
		}

		@Override
		public Class<?> getObjectType() {
			return Product.class;
		}

	}

	@Configuration(proxyBeanMethods = false)
	@EnableAsync
	static class AsyncConfiguration {

		@Bean
		Executor taskExecutor() {
			return new SyncTaskExecutor();
		}

	}

	static class WithAsync {

		@Async
		public void later() {
		}

		@PgqueListener(queue = "q14", consumer = "async")
		void handle(String payload) {
			calls.add("with async " + payload);
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class Lambdas {

		@Bean
		Runnable lambda() {
			return () -> {
			};
		}

	}

	static class PrivateAndStatic {

		@PgqueListener(queue = "q15", consumer = "private")
		private void handle(String payload) {
			calls.add("private " + payload);
		}

		@PgqueListener(queue = "q16", consumer = "static")
		static void handleStatic(String payload) {
			calls.add("static " + payload);
		}

	}

}
