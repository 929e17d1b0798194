package io.pgque.boot;

import java.io.IOException;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import javax.sql.DataSource;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.annotation.PgqueListener;
import io.pgque.annotation.PgqueListenerAnnotationBeanPostProcessor;
import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.config.PgqueContainerFactoryCustomizer;
import io.pgque.config.PgqueListenerConfigurer;
import io.pgque.config.PgqueListenerContainerFactory;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.config.SimplePgqueListenerEndpoint;
import io.pgque.core.DeadLetter;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.core.PgqueMessage;
import io.pgque.core.PgqueQueue;
import io.pgque.core.PgqueTemplate;
import io.pgque.event.ListenerContainerStartedEvent;
import io.pgque.event.MessageDeadLetteredEvent;
import io.pgque.event.PgqueApplicationEvent;
import io.pgque.listener.BackOffSettings;
import io.pgque.listener.DefaultPgqueErrorHandler;
import io.pgque.listener.FailureAction;
import io.pgque.listener.InstanceHeartbeat;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.ListenerMode;
import io.pgque.listener.PgqueContainerProperties;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageInterceptor;
import io.pgque.listener.PgqueMessageListener;
import io.pgque.listener.PgqueMessageListenerContainer;
import io.pgque.listener.RetryRules;
import io.pgque.listener.UnknownTypePolicy;
import io.pgque.listener.WakeupListener;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.header.HeaderColumn;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import jakarta.validation.Valid;
import jakarta.validation.constraints.Positive;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionFactory;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.boot.validation.autoconfigure.ValidationAutoConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.event.EventListener;
import org.springframework.core.annotation.Order;
import org.springframework.core.task.TaskExecutor;
import org.springframework.jdbc.core.JdbcOperations;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.messaging.converter.MessageConverter;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.messaging.handler.annotation.support.MessageHandlerMethodFactory;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.transaction.TransactionManager;
import org.springframework.transaction.support.TransactionOperations;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link PgqueListenerAutoConfiguration}, and for whole applications.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class PgqueListenerAutoConfigurationTests {

	private final TestDatabase database;

	private final ApplicationContextRunner runner;

	PgqueListenerAutoConfigurationTests(TestDatabase database) {
		this.database = database;
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
					DataSourceTransactionManagerAutoConfiguration.class, TransactionAutoConfiguration.class,
					PgqueAutoConfiguration.class, PgqueSchemaAutoConfiguration.class,
					PgqueTickerAutoConfiguration.class, PgqueListenerAutoConfiguration.class))
			.withPropertyValues(database.springProperties())
			.withPropertyValues("spring.datasource.hikari.maximum-pool-size=4", "pgque.schema.mode=none");
	}

	private static ConditionFactory await() {
		return Awaitility.await().atMost(Duration.ofSeconds(20)).pollInterval(Duration.ofMillis(5));
	}

	@Test
	void sentInATransactionIsHandledAfterItsCommit() {
		this.runner.withBean(Orders.class).run((context) -> {
			Orders orders = context.getBean(Orders.class);
			PgqueTemplate template = context.getBean(PgqueTemplate.class);
			TransactionTemplate transaction = context.getBean(TransactionTemplate.class);
			transaction.executeWithoutResult((status) -> {
				template.send("orders", new OrderPlaced(1));
				status.setRollbackOnly();
			});
			for (int id = 2; id <= 20; id++) {
				OrderPlaced order = new OrderPlaced(id);
				transaction.executeWithoutResult((status) -> template.send("orders", order));
				await().atMost(Duration.ofMillis(500)).until(() -> orders.billed.contains(order));
			}
			await().until(() -> orders.shipped.size() == 19);
			assertThat(orders.billed).hasSize(19).doesNotContain(new OrderPlaced(1));
			assertThat(orders.shipped).isEqualTo(orders.billed);
		});
	}

	@Test
	void failuresAreRetriedAndBecomeDeadLettersThatCanBeReplayed() {
		this.runner.withBean(Declining.class)
			.withBean(PgqueQueue.class, () -> PgqueQueue.named("declined").maxRetries(2).build())
			.withPropertyValues("payments.queue=declined", "pgque.listener.retry.delay=10ms",
					"pgque.ticker.retry-interval=20ms")
			.run((context) -> {
				Declining payments = context.getBean(Declining.class);
				context.getBean(PgqueTemplate.class).send("declined", new OrderPlaced(13));
				await().until(() -> payments.events.size() == 1);
				assertThat(payments.attempts).containsExactly(1, 2, 3);
				List<DeadLetter> dead = context.getBean(PgqueAdminOperations.class)
					.deadLetters()
					.inspect("declined", 10);
				assertThat(dead).hasSize(1);
				assertThat(dead.get(0).reason()).isEqualTo("java.lang.IllegalStateException: declined");
				payments.decline = false;
				context.getBean(PgqueAdminOperations.class).deadLetters().replay(dead.get(0).id());
				await().until(() -> payments.accepted.size() == 1);
			});
	}

	@Test
	void deliveriesOfAMessageThatAlwaysFailsFollowTheRetryPolicy() {
		this.runner.withBean(Hopeless.class)
			.withBean(PgqueQueue.class, () -> PgqueQueue.named("hopeless").maxRetries(3).build())
			.withPropertyValues("pgque.listener.retry.delay=300ms", "pgque.listener.retry.multiplier=1",
					"pgque.listener.retry.jitter=0ms", "pgque.ticker.retry-interval=20ms")
			.run((context) -> {
				Hopeless hopeless = context.getBean(Hopeless.class);
				context.getBean(PgqueTemplate.class).send("hopeless", "x");
				PgqueAdminOperations admin = context.getBean(PgqueAdminOperations.class);
				await().until(() -> admin.deadLetters().inspect("hopeless", 10).size() == 1);
				await().during(Duration.ofSeconds(1)).until(() -> hopeless.calls.size() == 4);
				for (int i = 1; i < 4; i++) {
					assertThat(Duration.ofNanos(hopeless.calls.get(i) - hopeless.calls.get(i - 1)))
						.isBetween(Duration.ofMillis(300), Duration.ofSeconds(2));
				}
			});
	}

	@Test
	void undecodablePayloadIsDeadAtOnceAndBlocksNobody() {
		this.runner.withBean(Orders.class).run((context) -> {
			Orders orders = context.getBean(Orders.class);
			PgqueTemplate template = context.getBean(PgqueTemplate.class);
			context.getBean(TransactionTemplate.class).executeWithoutResult((status) -> {
				template.send("orders", new OrderPlaced(101));
				template.send("orders", "OrderPlaced", "{\"id\" : \"bad\"}");
				template.send("orders", new OrderPlaced(102));
			});
			await().until(() -> orders.billed.contains(new OrderPlaced(102)));
			await().until(() -> orders.shipped.contains(new OrderPlaced(102)));
			assertThat(orders.billed).containsSequence(new OrderPlaced(101), new OrderPlaced(102));
			await().untilAsserted(
					() -> assertThat(context.getBean(PgqueAdminOperations.class).deadLetters().inspect("orders", 10))
						.hasSize(2)
						.allSatisfy((letter) -> assertThat(letter.payload()).isEqualTo("{\"id\" : \"bad\"}"))
						.allSatisfy((letter) -> assertThat(letter.reason()).contains("MessageConversionException")));
		});
	}

	@Test
	void whatIsSentOnReadinessOfTheFirstStartIsDelivered() {
		this.runner.withBean(SendsWhenReady.class)
			.withPropertyValues("spring.application.name=first")
			.run((context) -> {
				context.publishEvent(new ApplicationReadyEvent(new org.springframework.boot.SpringApplication(),
						new String[0], context.getSourceApplicationContext(ConfigurableApplicationContext.class),
						Duration.ZERO));
				await().until(() -> context.getBean(SendsWhenReady.class).received.size() == 1);
				assertThat(context.getBean(SendsWhenReady.class).received.get(0).consumer()).isEqualTo("first");
			});
	}

	@Test
	void severalInstancesWithOwnConsumersSeeEverything() {
		int messages = 300;
		this.runner.withBean(Orders.class).run((sender) -> {
			this.runner.withBean(OtherConsumer.class).run((other) -> {
				PgqueTemplate template = sender.getBean(PgqueTemplate.class);
				TransactionTemplate transaction = other.getBean(TransactionTemplate.class);
				IntStream.range(1000, 1000 + messages).parallel().forEach((id) -> {
					PgqueTemplate chosen = (id % 2 == 0) ? template : other.getBean(PgqueTemplate.class);
					((id % 2 == 0) ? sender.getBean(TransactionTemplate.class) : transaction)
						.executeWithoutResult((status) -> chosen.send("orders", new OrderPlaced(id)));
				});
				Orders orders = sender.getBean(Orders.class);
				OtherConsumer reports = other.getBean(OtherConsumer.class);
				await().until(() -> orders.billed.size() >= messages && orders.shipped.size() >= messages
						&& reports.reported.size() >= messages);
				assertThat(orders.billed).hasSize(messages).doesNotHaveDuplicates();
				assertThat(reports.reported).hasSize(messages).doesNotHaveDuplicates();
			});
		});
	}

	@Test
	void instanceThatStopsLosesNothingAndTheNextGoesOn() {
		List<Long> handled = new CopyOnWriteArrayList<>();
		Semaphore permits = new Semaphore(0);
		ApplicationContextRunner instance = this.runner.withBean(Gated.class, () -> new Gated(permits, handled))
			.withPropertyValues("pgque.listener.page-size=50", "pgque.listener.shutdown-timeout=50ms");
		int messages = 400;
		long[] begin = new long[1];
		for (int round = 1; round <= 20; round++) {
			boolean first = (round == 1);
			int target = round * 19;
			permits.release(19);
			instance.run((context) -> {
				if (first) {
					context.getBean(PgqueTemplate.class)
						.sendBatch("gated", IntStream.range(0, messages).mapToObj(OrderPlaced::new).toList());
				}
				await().until(() -> handled.size() >= target);
				begin[0] = System.nanoTime();
			});
			assertThat(Duration.ofNanos(System.nanoTime() - begin[0])).isLessThan(Duration.ofMillis(1050));
		}
		permits.release(messages);
		instance.run((context) -> await().until(() -> handled.size() >= messages));
		assertThat(handled).hasSize(messages).doesNotHaveDuplicates().isSorted();
	}

	@Test
	void idleApplicationWithTenListenersLeavesTheDatabaseAlone() {
		this.runner.withUserConfiguration(TenListeners.class).run((context) -> {
			await().until(() -> context.getBean(PgqueListenerEndpointRegistry.class)
				.getListenerContainers()
				.stream()
				.noneMatch(PgqueMessageListenerContainer::isStandby));
			// Sessions tell what they did at the start seconds later.
			await().atMost(Duration.ofMinutes(1)).until(() -> {
				long before = transactions();
				await().during(Duration.ofSeconds(5)).until(() -> true);
				return transactions() - before <= 60;
			});
		});
	}

	private long transactions() {
		return this.database.value(Long.class,
				"select xact_commit + xact_rollback from pg_stat_database where datname = current_database()");
	}

	@Test
	void idleContextClosesAtOnceAndLeavesNoThread(CapturedOutput output) {
		long[] begin = new long[1];
		this.runner.withBean(Orders.class).run((context) -> {
			await().until(() -> context.getBean(WakeupListener.class).isListening("orders"));
			begin[0] = System.nanoTime();
		});
		assertThat(Duration.ofNanos(System.nanoTime() - begin[0])).isLessThan(Duration.ofSeconds(1));
		await().untilAsserted(() -> assertThat(Thread.getAllStackTraces().keySet())
			.noneMatch((thread) -> thread.getName().startsWith("pgque-")));
		assertThat(output).doesNotContain("WARN").doesNotContain("not eligible for getting processed");
	}

	@Test
	void twoInstancesShareAConsumerAndTheHeartbeatHasAConnectionOfItsOwn() {
		this.runner.withBean(Orders.class).run((first) -> {
			await().until(() -> !standby(first, "orders.billing"));
			this.runner.withBean(Orders.class).run((second) -> {
				await().until(() -> standby(second, "orders.billing"));
				await().until(() -> this.database.value(Integer.class,
						"select count(*)::int from pg_stat_activity where datname = current_database()"
								+ " and application_name = 'pgque-heartbeat'") == 2);
				assertThat(this.database.values(String.class,
						"select distinct instance from pgque.leases() order by instance"))
					.containsExactly(first.getBean(InstanceHeartbeat.class).getInstance());
				registry(first).getListenerContainer("orders.billing").stop();
				await().until(() -> !standby(second, "orders.billing"));
			});
		});
	}

	@Test
	void listenersSayHowTheirConsumerIsShared() {
		this.runner.withBean(Sharing.class)
			.withPropertyValues("slots=6", "pgque.listener.auto-startup=false")
			.run((context) -> {
				PgqueContainerProperties cooperative = registry(context).getListenerContainer("orders.cooperative")
					.getContainerProperties();
				assertThat(cooperative.getMode()).isEqualTo(ListenerMode.COOPERATIVE);
				assertThat(cooperative.getConcurrency()).isEqualTo(4);
				PgqueContainerProperties partitioned = registry(context).getListenerContainer("orders.partitioned")
					.getContainerProperties();
				assertThat(partitioned.getMode()).isEqualTo(ListenerMode.PARTITIONED);
				assertThat(partitioned.getConcurrency()).isOne();
				assertThat(partitioned.getPartitions()).isEqualTo(6);
			});
	}

	@Test
	void transactionalListenersHoldConnectionsThatThePoolMustHave() {
		this.runner.withBean(Transactional.class).withPropertyValues("workers=3").run((context) -> {
			context.getBean(PgqueTemplate.class).send("orders", new OrderPlaced(1));
			Transactional listener = context.getBean(Transactional.class);
			await().until(() -> listener.inTransaction.equals(List.of(true)));
		});
		this.runner.withBean(Transactional.class).withPropertyValues("workers=4").run((context) -> {
			assertThat(context).hasFailed();
			assertThat(context.getStartupFailure()).isInstanceOf(InvalidListenerException.class)
				.hasMessageContaining(
						"hold 4 connections while their handlers run, and one more is needed for the rest, "
								+ "but the pool has 4. Set spring.datasource.hikari.maximum-pool-size to 5 or more");
		});
	}

	@Test
	@EnabledForJreRange(min = JRE.JAVA_21)
	void containersRunOnVirtualThreadsWhenTheApplicationDoes() {
		this.runner.withBean(Orders.class).withPropertyValues("spring.threads.virtual.enabled=true").run((context) -> {
			assertThat(registry(context).getListenerContainer("orders.billing")
				.getContainerProperties()
				.isVirtualThreads()).isTrue();
			await().until(() -> !standby(context, "orders.billing"));
			assertThat(Thread.getAllStackTraces().keySet()).as("which lists platform threads")
				.noneMatch((thread) -> thread.getName().equals("pgque-orders.billing"));
		});
	}

	private static boolean standby(ApplicationContext context, String id) {
		PgqueMessageListenerContainer container = registry(context).getListenerContainer(id);
		return container.isStandby();
	}

	private static PgqueListenerEndpointRegistry registry(ApplicationContext context) {
		return context.getBean(PgqueListenerEndpointRegistry.class);
	}

	@Test
	void propertiesReachTheContainers() {
		this.runner.withBean(Orders.class)
			.withPropertyValues("pgque.listener.auto-startup=false", "pgque.listener.poll-interval=2s",
					"pgque.listener.fallback-poll-interval=3s", "pgque.listener.lease-duration=5s",
					"pgque.listener.mode=partitioned", "pgque.listener.concurrency=3", "pgque.listener.partitions=5",
					"pgque.listener.dead-interval=40s", "pgque.listener.transactional=true",
					"spring.datasource.hikari.maximum-pool-size=10", "spring.threads.virtual.enabled=false",
					"pgque.listener.page-size=7", "pgque.listener.page-bytes=1KB",
					"pgque.listener.unknown-type-policy=skip", "pgque.listener.shutdown-timeout=4s",
					"pgque.listener.subscribe=false", "pgque.headers.column=none", "pgque.listener.wakeup=poll",
					"pgque.listener.failure-brake.threshold=3", "pgque.listener.failure-brake.pause=6s",
					"pgque.listener.failure-brake.max-pause=7s", "pgque.listener.hold-failed-keys=true",
					"pgque.listener.retry.delay=8s", "pgque.listener.retry.multiplier=3",
					"pgque.listener.retry.max-delay=9s", "pgque.listener.retry.jitter=1s",
					"pgque.listener.retry.includes=java.io.IOException",
					"pgque.listener.retry.excludes=java.lang.IllegalStateException,java.lang.Error")
			.run((context) -> {
				assertThat(context).doesNotHaveBean(WakeupListener.class);
				PgqueListenerEndpointRegistry registry = context.getBean(PgqueListenerEndpointRegistry.class);
				assertThat(registry.getListenerContainerIds()).containsExactlyInAnyOrder("orders.billing",
						"orders.shipping");
				assertThat(registry.getListenerContainers()).noneMatch(PgqueMessageListenerContainer::isRunning);
				PgqueContainerProperties properties = registry.getListenerContainer("orders.billing")
					.getContainerProperties();
				assertThat(properties.getFailureBrakeThreshold()).isEqualTo(3);
				assertThat(properties.getFailureBrakePause()).isEqualTo(Duration.ofSeconds(6));
				assertThat(properties.getFailureBrakeMaxPause()).isEqualTo(Duration.ofSeconds(7));
				assertThat(properties.isHoldFailedKeys()).isTrue();
				assertThat(properties.getBackOff()).isEqualTo(
						new BackOffSettings(Duration.ofSeconds(8), 3, Duration.ofSeconds(9), Duration.ofSeconds(1)));
				assertThat(properties.getRetryRules()).isEqualTo(
						new RetryRules(Set.of(IOException.class), Set.of(IllegalStateException.class, Error.class)));
				assertThat(properties.getPollInterval()).isEqualTo(Duration.ofSeconds(2));
				assertThat(properties.getFallbackPollInterval()).isEqualTo(Duration.ofSeconds(3));
				assertThat(properties.getLeaseDuration()).isEqualTo(Duration.ofSeconds(5));
				assertThat(properties.getMode()).isEqualTo(ListenerMode.PARTITIONED);
				assertThat(properties.getConcurrency()).isEqualTo(3);
				assertThat(properties.getPartitions()).isEqualTo(5);
				assertThat(properties.getDeadInterval()).isEqualTo(Duration.ofSeconds(40));
				assertThat(properties.isTransactional()).isTrue();
				assertThat(properties.isVirtualThreads()).isFalse();
				assertThat(properties.getPageSize()).isEqualTo(7);
				assertThat(properties.getPageBytes()).isEqualTo(1024);
				assertThat(properties.getUnknownTypePolicy()).isEqualTo(UnknownTypePolicy.SKIP);
				assertThat(properties.getShutdownTimeout()).isEqualTo(Duration.ofSeconds(4));
				assertThat(properties.isSubscribe()).isFalse();
				assertThat(properties.getHeaderColumn()).isEqualTo(HeaderColumn.NONE);
			});
	}

	@Test
	void propertiesAndDefaultsAgree() {
		this.runner.withBean(Orders.class).run((context) -> {
			PgqueContainerProperties properties = context.getBean(DefaultPgqueListenerContainerFactory.class)
				.getContainerProperties();
			assertThat(properties).usingRecursiveComparison().isEqualTo(new PgqueContainerProperties());
		});
	}

	@Test
	void defaultConsumer() {
		this.runner.withBean(SendsWhenReady.class)
			.withPropertyValues("spring.application.name=app", "pgque.listener.consumer=own")
			.run((context) -> assertThat(
					context.getBean(PgqueListenerEndpointRegistry.class).getListenerContainers().iterator().next())
				.extracting(PgqueMessageListenerContainer::getConsumer)
				.isEqualTo("own"));
	}

	@Test
	void missingConsumerIsExplained() {
		this.runner.withBean(SendsWhenReady.class).run((context) -> {
			assertThat(context).getFailure().isInstanceOf(InvalidListenerException.class);
			FailureAnalysis analysis = new PgqueFailureAnalyzer().analyze(context.getStartupFailure());
			assertThat(analysis.getDescription()).contains(SendsWhenReady.class.getName() + ".receive(PgqueMessage)",
					"has no consumer name");
			assertThat(analysis.getAction()).contains("spring.application.name");
		});
	}

	@Test
	void customizersAreCalledInOrder() {
		this.runner.withUserConfiguration(Customizers.class)
			.run((context) -> assertThat(
					context.getBean(DefaultPgqueListenerContainerFactory.class).getContainerProperties().getPageSize())
				.isEqualTo(12));
	}

	@Test
	void errorHandlerBeanReplacesTheDefault() {
		this.runner.withBean(Declining.class)
			.withBean(PgqueErrorHandler.class, () -> (failure, message, context) -> FailureAction.skip())
			.run((context) -> {
				context.getBean(PgqueTemplate.class).send("payments", new OrderPlaced(7));
				PgqueMessageListenerContainer container = context.getBean(PgqueListenerEndpointRegistry.class)
					.getListenerContainer("payments.billing");
				await().until(() -> container.getCounters().skipped() == 1);
			});
	}

	@Test
	void ackModeOfAllListeners() {
		this.runner.withBean(Orders.class)
			.withPropertyValues("pgque.listener.ack-mode=manual")
			.run((context) -> assertThat(context).getFailure()
				.isInstanceOf(InvalidListenerException.class)
				.hasMessageContaining("ackMode 'manual'"));
	}

	@Test
	void retryPropertiesDecide() {
		this.runner.withBean(Declining.class)
			.withPropertyValues("pgque.listener.retry.excludes=java.lang.IllegalStateException")
			.run((context) -> {
				context.getBean(PgqueTemplate.class).send("payments", new OrderPlaced(7));
				PgqueMessageListenerContainer container = context.getBean(PgqueListenerEndpointRegistry.class)
					.getListenerContainer("payments.billing");
				await().until(() -> container.getCounters().deadLettered() == 1);
			});
	}

	@Test
	void severalErrorHandlersNeedAChoice() {
		PgqueErrorHandler handler = (failure, message, context) -> FailureAction.skip();
		ApplicationContextRunner several = this.runner.withPropertyValues("pgque.listener.auto-startup=false")
			.withBean("oneHandler", PgqueErrorHandler.class, () -> handler)
			.withBean("otherHandler", PgqueErrorHandler.class, () -> handler);
		several.withBean(Declining.class).run((context) -> {
			assertThat(context).getFailure().isInstanceOf(InvalidListenerException.class);
			assertThat(context.getStartupFailure()).hasMessageContaining("oneHandler")
				.hasMessageContaining("otherHandler")
				.hasMessageContaining("@Primary");
		});
		several.withBean(Declining.class)
			.withBean("chosenHandler", PgqueErrorHandler.class, () -> handler,
					(definition) -> definition.setPrimary(true))
			.run((context) -> assertThat(context).hasNotFailed());
		several.withBean(NamesItsHandler.class).run((context) -> assertThat(context).hasNotFailed());
	}

	@Test
	void invalidPayloadIsDeadAtOnceAndRepliesAreSent() {
		this.runner.withConfiguration(AutoConfigurations.of(ValidationAutoConfiguration.class))
			.withBean(Validating.class)
			.run((context) -> {
				PgqueTemplate template = context.getBean(PgqueTemplate.class);
				template.send("to-validate", new Amount(-1));
				template.send("to-validate", new Amount(5));
				Validating listeners = context.getBean(Validating.class);
				await().until(() -> listeners.replies.size() == 1);
				assertThat(listeners.replies).containsExactly(new Amount(10));
				assertThat(context.getBean(PgqueAdminOperations.class).deadLetters().inspect("to-validate", 10))
					.singleElement()
					.satisfies((dead) -> assertThat(dead.reason()).contains("MethodArgumentNotValidException"));
			});
		this.runner.withBean(Validating.class)
			.run((context) -> assertThat(context).getFailure()
				.isInstanceOf(InvalidListenerException.class)
				.hasMessageContaining("there is no Validator"));
	}

	@Test
	void interceptorBeansAreCalled() {
		List<String> calls = new CopyOnWriteArrayList<>();
		this.runner.withBean(Orders.class).withBean(PgqueMessageInterceptor.class, () -> new PgqueMessageInterceptor() {

			@Override
			public void before(ReceivedMessage message) {
				calls.add("before " + message.queue());
			}

		}).run((context) -> {
			context.getBean(PgqueTemplate.class).send("orders", new OrderPlaced(7));
			await().until(() -> calls.size() == 2);
			assertThat(calls).containsOnly("before orders");
		});
	}

	@Test
	void ownContainerFactoryWins() {
		this.runner.withUserConfiguration(OwnFactory.class)
			.run((context) -> assertThat(context).hasSingleBean(PgqueListenerContainerFactory.class)
				.getBean(DefaultPgqueListenerContainerFactory.class)
				.extracting(DefaultPgqueListenerContainerFactory::getDefaultConsumer)
				.isEqualTo("mine"));
	}

	@Test
	void lazyInitializationStopsNoConsumption() {
		this.runner
			.withInitializer(
					(context) -> context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor()))
			.withBean(Declining.class)
			.run((context) -> {
				assertThat(context.getSourceApplicationContext().getBeanFactory().containsSingleton("pgqueTicker"))
					.isTrue();
				context.getBean(PgqueTemplate.class).send("payments", new OrderPlaced(8));
				Declining payments = context.getBean(Declining.class);
				await().until(() -> !payments.attempts.isEmpty());
			});
	}

	@Test
	void startedEventsArePublished() {
		this.runner.withBean(Orders.class)
			.run((context) -> await().until(() -> context.getBean(Orders.class).events.stream()
				.filter(ListenerContainerStartedEvent.class::isInstance)
				.map((event) -> ((ListenerContainerStartedEvent) event).getListenerId())
				.collect(Collectors.toSet())
				.equals(java.util.Set.of("orders.billing", "orders.shipping"))));
	}

	@Test
	void nothingWhenDisabled() {
		this.runner.withBean(Orders.class)
			.withPropertyValues("pgque.enabled=false")
			.run((context) -> assertThat(context.getBeanDefinitionNames())
				.noneMatch((name) -> name.toLowerCase(Locale.ROOT).contains("pgque") && !name.contains("Tests")));
	}

	@Test
	void noBeanThatOthersPickByType() {
		this.runner.run((context) -> {
			assertThat(context).hasSingleBean(PgqueListenerEndpointRegistry.class)
				.hasSingleBean(PgqueListenerAnnotationBeanPostProcessor.class);
			for (Class<?> type : List.of(Flyway.class, TaskScheduler.class, ScheduledExecutorService.class,
					Executor.class, TaskExecutor.class, JdbcOperations.class, ObjectMapper.class,
					MessageConverter.class, MessageHandlerMethodFactory.class, Clock.class)) {
				assertThat(context).doesNotHaveBean(type);
			}
			assertThat(context).hasSingleBean(DataSource.class)
				.hasSingleBean(TransactionManager.class)
				.hasSingleBean(TransactionOperations.class);
		});
	}

	@Test
	void connectionForNotificationsMayHaveItsOwnCredentials() {
		TestDatabase.LoginRole role = this.database.createLogin();
		this.runner.withBean(Orders.class)
			.withPropertyValues("pgque.listener.connection.url=" + this.database.url(),
					"pgque.listener.connection.username=" + role.name(),
					"pgque.listener.connection.password=" + role.password())
			.run((context) -> {
				await().until(() -> context.getBean(WakeupListener.class).isListening("orders"));
				assertThat(this.database.values(String.class,
						"select usename::text from pg_catalog.pg_stat_activity where application_name = 'pgque-wakeup'"
								+ " and datname = current_database()"))
					.containsExactly(role.name());
			});
	}

	@Test
	void addressThatCannotBeToldMeansPollingAndAWarning(CapturedOutput output) {
		this.runner.withUserConfiguration(OpaqueDataSource.class)
			.withInitializer((context) -> context.getBeanFactory().registerSingleton("database", this.database))
			.withBean(Declining.class)
			.withPropertyValues("pgque.listener.poll-interval=50ms")
			.run((context) -> {
				assertThat(context).hasNotFailed();
				assertThat(output).contains("Set pgque.listener.connection.url");
				context.getBean(PgqueTemplate.class).send("payments", new OrderPlaced(9));
				await().until(() -> !context.getBean(Declining.class).attempts.isEmpty());
			});
	}

	@Test
	void autoCommitOffInThePoolSettlesNonetheless() {
		this.runner.withBean(Declining.class)
			.withPropertyValues("spring.datasource.hikari.auto-commit=false")
			.run((context) -> {
				assertThat(context.getBean(HikariDataSource.class).isAutoCommit()).isFalse();
				context.getBean(Declining.class).decline = false;
				context.getBean(PgqueTemplate.class).send("payments", new OrderPlaced(10));
				await().until(() -> context.getBean(Declining.class).accepted.contains(new OrderPlaced(10)));
				await().until(() -> new JdbcTemplate(this.database.dataSource()).queryForObject(
						"select bool_and(current_batch is null) from pgque.get_consumer_info('payments')",
						Boolean.class));
			});
	}

	record OrderPlaced(long id) {
	}

	static class Orders {

		final List<OrderPlaced> billed = new CopyOnWriteArrayList<>();

		final List<OrderPlaced> shipped = new CopyOnWriteArrayList<>();

		final List<PgqueApplicationEvent> events = new CopyOnWriteArrayList<>();

		@PgqueListener(queue = "orders", consumer = "billing")
		void bill(OrderPlaced order) {
			this.billed.add(order);
		}

		@PgqueListener(queue = "orders", consumer = "shipping")
		void ship(OrderPlaced order) {
			this.shipped.add(order);
		}

		@EventListener
		void on(PgqueApplicationEvent event) {
			this.events.add(event);
		}

	}

	static class Transactional {

		final List<Boolean> inTransaction = new CopyOnWriteArrayList<>();

		@PgqueListener(queue = "orders", consumer = "transactional", mode = "partitioned", concurrency = "${workers}",
				transactional = "true")
		void onOrder(OrderPlaced order) {
			this.inTransaction.add(TransactionSynchronizationManager.isActualTransactionActive());
		}

	}

	static class Sharing {

		@PgqueListener(queue = "orders", consumer = "cooperative", mode = "cooperative", concurrency = "4")
		void cooperative(OrderPlaced order) {
		}

		@PgqueListener(queue = "orders", consumer = "partitioned", mode = "PARTITIONED", partitions = "${slots}")
		void partitioned(OrderPlaced order) {
		}

	}

	static class OtherConsumer {

		final List<OrderPlaced> reported = new CopyOnWriteArrayList<>();

		@PgqueListener(queue = "orders", consumer = "reporting")
		void report(OrderPlaced order) {
			this.reported.add(order);
		}

	}

	static class Declining {

		final List<Integer> attempts = new CopyOnWriteArrayList<>();

		final List<OrderPlaced> accepted = new CopyOnWriteArrayList<>();

		final List<MessageDeadLetteredEvent> events = new CopyOnWriteArrayList<>();

		volatile boolean decline = true;

		@PgqueListener(queue = "${payments.queue:payments}", consumer = "billing")
		void bill(OrderPlaced order, PgqueMessage message) {
			this.attempts.add(message.deliveryAttempt());
			if (this.decline) {
				throw new IllegalStateException("declined");
			}
			this.accepted.add(order);
		}

		@EventListener
		void on(MessageDeadLetteredEvent event) {
			this.events.add(event);
		}

	}

	static class SendsWhenReady {

		final List<PgqueMessage> received = new CopyOnWriteArrayList<>();

		private final PgqueTemplate template;

		SendsWhenReady(PgqueTemplate template) {
			this.template = template;
		}

		@EventListener(ApplicationReadyEvent.class)
		void ready() {
			this.template.send("when-ready", "hello");
		}

		@PgqueListener(queue = "when-ready")
		void receive(PgqueMessage message) {
			this.received.add(message);
		}

	}

	static class Gated {

		private final Semaphore permits;

		private final List<Long> handled;

		Gated(Semaphore permits, List<Long> handled) {
			this.permits = permits;
			this.handled = handled;
		}

		@PgqueListener(queue = "gated", consumer = "gated")
		void handle(PgqueMessage message) throws InterruptedException {
			this.permits.acquire();
			this.handled.add(message.id());
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class Customizers {

		@Bean
		@Order(2)
		PgqueContainerFactoryCustomizer second() {
			return (factory) -> factory.getContainerProperties()
				.setPageSize(factory.getContainerProperties().getPageSize() + 2);
		}

		@Bean
		@Order(1)
		PgqueContainerFactoryCustomizer first() {
			return (factory) -> factory.getContainerProperties().setPageSize(10);
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class OwnFactory {

		@Bean
		DefaultPgqueListenerContainerFactory pgqueListenerContainerFactory(io.pgque.client.PgqueClient client,
				PgqueAdminOperations admin, io.pgque.support.converter.PgqueMessageConverter converter,
				io.pgque.core.PgqueEventTypeResolver resolver) {
			DefaultPgqueListenerContainerFactory factory = new DefaultPgqueListenerContainerFactory(client, admin,
					converter, resolver);
			factory.setDefaultConsumer("mine");
			factory.setErrorHandler(new DefaultPgqueErrorHandler());
			return factory;
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class OpaqueDataSource {

		@Bean
		DataSource dataSource(TestDatabase database) {
			return new AbstractDataSource() {

				@Override
				public java.sql.Connection getConnection() throws java.sql.SQLException {
					return database.connect();
				}

				@Override
				public java.sql.Connection getConnection(String username, String password)
						throws java.sql.SQLException {
					return getConnection();
				}

			};
		}

	}

	static class NamesItsHandler {

		@PgqueListener(queue = "named", consumer = "named", errorHandler = "otherHandler")
		void handle(String payload) {
		}

	}

	record Amount(@Positive int value) {
	}

	static class Validating {

		final List<Amount> replies = new CopyOnWriteArrayList<>();

		@PgqueListener(queue = "to-validate", consumer = "validating")
		@SendTo("doubled")
		Amount validate(@Valid Amount amount) {
			return new Amount(2 * amount.value());
		}

		@PgqueListener(queue = "doubled", consumer = "validating")
		void doubled(Amount amount) {
			this.replies.add(amount);
		}

	}

	static class Hopeless {

		final List<Long> calls = new CopyOnWriteArrayList<>();

		@PgqueListener(queue = "hopeless", consumer = "hopeless")
		void handle(String payload) {
			this.calls.add(System.nanoTime());
			throw new IllegalStateException("always");
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class TenListeners {

		@Bean
		PgqueListenerConfigurer idleListeners() {
			return (registrar) -> IntStream.range(0, 10).forEach((number) -> {
				SimplePgqueListenerEndpoint endpoint = new SimplePgqueListenerEndpoint("idle" + number,
						(PgqueMessageListener) (message) -> {
						});
				endpoint.setConsumer("idle");
				registrar.registerEndpoint(endpoint);
			});
		}

	}

}
