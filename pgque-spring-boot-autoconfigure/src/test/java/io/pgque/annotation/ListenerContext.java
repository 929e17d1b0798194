package io.pgque.annotation;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import javax.sql.DataSource;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.config.PgqueListenerBeanNames;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.core.PgqueAdmin;
import io.pgque.core.SimpleEventTypeResolver;
import io.pgque.listener.InvalidListenerException;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.TestDatabase;

import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.MapPropertySource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

/**
 * An application without Spring Boot and without a ticker: messages become visible when
 * the test sends them.
 */
class ListenerContext implements AutoCloseable {

	private final TestDatabase database;

	final PgqueClient client;

	private AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();

	ListenerContext(TestDatabase database) {
		this.database = database;
		this.client = new PgqueClient(database.dataSource());
	}

	PgqueListenerEndpointRegistry start(Class<?>... classes) {
		this.context.close();
		this.context = new AnnotationConfigApplicationContext();
		this.context.getEnvironment()
			.getPropertySources()
			.addFirst(new MapPropertySource("test", Map.of("on", "true", "off", "false", "manual", "manual")));
		this.context.getBeanFactory().registerSingleton("database", this.database);
		this.context.register(Infrastructure.class);
		this.context.register(classes);
		this.context.refresh();
		return this.context.getBean(PgqueListenerEndpointRegistry.class);
	}

	/**
	 * Check that a listener is refused at start-up, with all these parts in the message.
	 */
	void refused(Class<?> type, String... parts) {
		assertThatExceptionOfType(InvalidListenerException.class).isThrownBy(() -> start(type))
			.satisfies((ex) -> assertThat(ex.getMessage()).contains(parts))
			.satisfies((ex) -> assertThat(ex.getRemedy()).isNotEmpty());
	}

	boolean isActive() {
		return this.context.isActive();
	}

	void send(String queue, String type, String... payloads) {
		for (String payload : payloads) {
			this.client.send(queue, type, payload, EventExtras.NONE);
		}
		this.client.tick(List.of(queue));
	}

	static DefaultPgqueListenerContainerFactory factory(DataSource dataSource) {
		DefaultPgqueListenerContainerFactory factory = new DefaultPgqueListenerContainerFactory(
				new PgqueClient(dataSource), new PgqueAdmin(dataSource, List.of()), new Jackson2MessageConverter(),
				new SimpleEventTypeResolver());
		factory.getContainerProperties().setPollInterval(Duration.ofMillis(20));
		return factory;
	}

	static void awaitCalls(List<?> calls, Object... expected) {
		await().atMost(Duration.ofSeconds(10))
			.untilAsserted(() -> assertThat(new ArrayList<Object>(calls)).containsExactly(expected));
	}

	@Override
	public void close() {
		this.context.close();
	}

	@Configuration(proxyBeanMethods = false)
	@EnablePgque
	static class Infrastructure {

		@Bean(PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY)
		DefaultPgqueListenerContainerFactory factory(TestDatabase database) {
			return ListenerContext.factory(database.dataSource());
		}

	}

}
