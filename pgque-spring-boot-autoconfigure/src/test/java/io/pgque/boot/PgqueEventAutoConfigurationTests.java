package io.pgque.boot;

import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;

import io.pgque.client.EventRow;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueEvent;
import io.pgque.core.PgqueQueue;
import io.pgque.event.ApplicationEventForwarder;
import io.pgque.event.ExternalizedEventForwarder;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;

import org.springframework.boot.autoconfigure.AutoConfigurationPackage;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.context.event.SimpleApplicationEventMulticaster;
import org.springframework.context.support.AbstractApplicationContext;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.modulith.events.EventExternalizationConfiguration;
import org.springframework.modulith.events.Externalized;
import org.springframework.modulith.events.config.EventExternalizationAutoConfiguration;
import org.springframework.modulith.events.core.ConditionalEventListener;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link PgqueEventAutoConfiguration}.
 */
@PgqueDatabase
class PgqueEventAutoConfigurationTests {

	private static int number;

	private final String consumer = "consumer" + (++number);

	private final ApplicationContextRunner runner;

	PgqueEventAutoConfigurationTests(TestDatabase database) {
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
					DataSourceTransactionManagerAutoConfiguration.class, TransactionAutoConfiguration.class,
					JacksonAutoConfiguration.class, PgqueSchemaAutoConfiguration.class, PgqueAutoConfiguration.class,
					PgqueEventAutoConfiguration.class))
			.withBean(PgqueQueue.class, () -> PgqueQueue.named("published").build())
			.withPropertyValues("pgque.ticker.mode=off")
			.withPropertyValues(database.springProperties());
	}

	private ApplicationContextRunner withModulith() {
		return this.runner.withUserConfiguration(Application.class)
			.withConfiguration(AutoConfigurations.of(EventExternalizationAutoConfiguration.class));
	}

	private void subscribe(ApplicationContext context) {
		context.getBean(PgqueClient.class).subscribe("published", this.consumer);
	}

	private static void publish(ApplicationContext context, boolean commit, Object... events) {
		context.getBean(TransactionTemplate.class).executeWithoutResult((status) -> {
			for (Object event : events) {
				context.publishEvent(event);
			}
			if (!commit) {
				status.setRollbackOnly();
			}
		});
	}

	private List<EventRow> received(ApplicationContext context) {
		PgqueClient client = context.getBean(PgqueClient.class);
		client.tickAll();
		return client.receiveBatch("published", this.consumer, 10, 1000).rows();
	}

	@Test
	void applicationEventsGoToTheLogInTheirTransaction() {
		this.runner.run((context) -> {
			subscribe(context);
			publish(context, true, new Published(1), "something else", new TypeOnly(2));
			publish(context, false, new Published(3));
			context.publishEvent(new Published(4));
			assertThat(received(context)).extracting(EventRow::data).containsExactly("{\"n\":1}", "{\"n\":4}");
			assertThat(received(context)).extracting(EventRow::type).containsOnly("published.it");
		});
	}

	@Test
	void eventOfAChildContextIsOneMessage() {
		this.runner.run((parent) -> this.runner.withParent(parent).run((child) -> {
			subscribe(child);
			publish(child, true, new Published(1));
			publish(parent, true, new Published(2));
			publish(child, false, new Published(3));
			assertThat(received(child)).extracting(EventRow::data).containsExactly("{\"n\":1}", "{\"n\":2}");
		}));
	}

	@Test
	void externalizedEventOfAChildContextIsOneMessage() {
		withModulith().run((parent) -> withModulith().withParent(parent).run((child) -> {
			subscribe(child);
			publish(child, true, new External("a"));
			publish(parent, true, new External("b"));
			assertThat(received(child)).hasSize(2);
		}));
	}

	@Test
	void applicationsMulticasterMayBeAsynchronous() {
		this.runner.withBean(AbstractApplicationContext.APPLICATION_EVENT_MULTICASTER_BEAN_NAME,
				SimpleApplicationEventMulticaster.class, () -> {
					SimpleApplicationEventMulticaster multicaster = new SimpleApplicationEventMulticaster();
					Executor executor = new SimpleAsyncTaskExecutor();
					multicaster.setTaskExecutor(executor);
					return multicaster;
				})
			.run((context) -> {
				subscribe(context);
				publish(context, false, new Published(1));
				publish(context, true, new Published(2));
				assertThat(received(context)).extracting(EventRow::data).containsExactly("{\"n\":2}");
			});
	}

	@Test
	void canBeSwitchedOff() {
		withModulith()
			.withPropertyValues("pgque.application-events.enabled=false", "pgque.application-events.modulith=false")
			.run((context) -> assertThat(context).doesNotHaveBean(ApplicationEventForwarder.class)
				.doesNotHaveBean(ExternalizedEventForwarder.class));
	}

	@Test
	void modulithsExternalizedEventsGoToTheirTarget() {
		withModulith().run((context) -> {
			subscribe(context);
			publish(context, true, new External("Ada"), new Both("Bob"));
			publish(context, false, new External("Eve"));
			List<EventRow> rows = received(context);
			assertThat(rows).extracting(EventRow::data)
				.containsExactly("{\"customer\":\"Ada\"}", "{\"customer\":\"Bob\"}");
			assertThat(rows).extracting(EventRow::type).containsExactly("External", "Both");
			assertThat(rows).extracting(EventRow::extra1).containsExactly("Ada", null);
		});
	}

	@Test
	void modulithsMappingAndHeadersCount() {
		withModulith()
			.withBean(EventExternalizationConfiguration.class,
					() -> EventExternalizationConfiguration.defaults(List.of("io.pgque.boot"))
						.mapping(External.class, (event) -> Map.of("mapped", event.customer()))
						.headers(External.class, (event) -> Map.of("tenant", 7))
						.build())
			.run((context) -> {
				subscribe(context);
				publish(context, true, new External("Ada"));
				assertThat(received(context)).singleElement().satisfies((row) -> {
					assertThat(row.data()).isEqualTo("{\"mapped\":\"Ada\"}");
					assertThat(row.extra4()).isEqualTo("{\"tenant\":\"7\"}");
				});
			});
	}

	@Test
	void modulithsBrokerTakesPrecedence() {
		withModulith().withBean(ConditionalEventListener.class, () -> (event) -> false)
			.run((context) -> assertThat(context).doesNotHaveBean(ExternalizedEventForwarder.class)
				.hasSingleBean(ApplicationEventForwarder.class));
	}

	@Test
	void worksWithoutModulith() {
		this.runner.withClassLoader(new FilteredClassLoader("org.springframework.modulith"))
			.run((context) -> assertThat(context).hasNotFailed()
				.doesNotHaveBean(ExternalizedEventForwarder.class)
				.hasSingleBean(ApplicationEventForwarder.class));
	}

	@PgqueEvent(queue = "published", type = "published.it")
	record Published(int n) {
	}

	@PgqueEvent(type = "no.queue")
	record TypeOnly(int n) {
	}

	@Externalized("published::#{customer}")
	record External(String customer) {
	}

	@Externalized("published::#{customer}")
	@PgqueEvent(queue = "published")
	record Both(String customer) {
	}

	@AutoConfigurationPackage
	static class Application {

	}

}
