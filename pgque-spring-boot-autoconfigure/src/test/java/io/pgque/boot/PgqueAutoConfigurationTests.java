package io.pgque.boot;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledExecutorService;

import javax.sql.DataSource;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import io.pgque.PgqueException;
import io.pgque.UnsupportedDatabaseException;
import io.pgque.client.PgqueClient;
import io.pgque.core.CommitListener;
import io.pgque.core.PgqueAdmin;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.core.PgqueEventTypeResolver;
import io.pgque.core.PgqueOperations;
import io.pgque.core.PgqueInbox;
import io.pgque.core.PgqueQueue;
import io.pgque.core.PgqueTemplate;
import io.pgque.schema.PgqueSchemaMigrator;
import io.pgque.schema.SchemaMode;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.support.converter.Jackson3MessageConverter;
import io.pgque.support.converter.PgqueMessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import io.pgque.ticker.PgqueTicker;
import io.pgque.ticker.TickerSettings;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;

import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcTemplateAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.context.support.SimpleThreadScope;
import org.springframework.jdbc.core.JdbcOperations;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.messaging.converter.MessageConverter;
import org.springframework.messaging.handler.annotation.support.MessageHandlerMethodFactory;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.TransactionManager;
import org.springframework.transaction.support.TransactionOperations;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.isNull;
import static org.mockito.BDDMockito.given;
import static org.mockito.BDDMockito.then;
import static org.mockito.Mockito.mock;

/**
 * Tests for {@link PgqueAutoConfiguration} and {@link PgqueTickerAutoConfiguration}.
 */
@PgqueDatabase
class PgqueAutoConfigurationTests {

	private static final AutoConfigurations OURS = AutoConfigurations.of(PgqueAutoConfiguration.class,
			PgqueSchemaAutoConfiguration.class, PgqueTickerAutoConfiguration.class);

	private final TestDatabase database;

	private final ApplicationContextRunner runner;

	PgqueAutoConfigurationTests(TestDatabase database) {
		this.database = database;
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
					DataSourceTransactionManagerAutoConfiguration.class, TransactionAutoConfiguration.class,
					JdbcTemplateAutoConfiguration.class, JacksonAutoConfiguration.class))
			.withConfiguration(OURS)
			.withPropertyValues(database.springProperties());
	}

	@Test
	void applicationHasWhatItCalls() {
		this.runner.run((context) -> {
			assertThat(context).hasSingleBean(PgqueTemplate.class)
				.hasSingleBean(PgqueAdmin.class)
				.hasSingleBean(PgqueClient.class)
				.hasSingleBean(PgqueTicker.class)
				.hasSingleBean(PgqueSchemaInitializer.class)
				.hasBean("pgqueTemplate")
				.hasBean("pgqueTicker");
			assertThat(context.getBean(PgqueTicker.class).isRunning()).isTrue();
		});
	}

	@Test
	void inboxIsThereWhenAskedFor() {
		this.runner.run((context) -> assertThat(context).doesNotHaveBean(PgqueInbox.class));
		this.runner.withPropertyValues("pgque.inbox.enabled=true", "pgque.inbox.retention=3h").run((context) -> {
			assertThat(context).hasSingleBean(PgqueInbox.class);
			assertThat(this.database.value(String.class, "select inbox_retention::text from pgque_internal.inbox_ring"))
				.isEqualTo("03:00:00");
		});
	}

	@Test
	void sentInTransactionIsVisibleSoonAfterItsCommit() {
		this.runner.withPropertyValues("pgque.ticker.interval=1h")
			.withBean(PgqueQueue.class, () -> queue("soon"))
			.run((context) -> {
				context.getBean(PgqueAdmin.class).subscribe("soon", "c");
				PgqueClient client = context.getBean(PgqueClient.class);
				context.getBean(TransactionTemplate.class)
					.executeWithoutResult((status) -> context.getBean(PgqueTemplate.class).send("soon", "a"));
				await().until(() -> client.receiveBatch("soon", "c", 10, 1000).rows().size() == 1);
			});
	}

	private static PgqueQueue queue(String name) {
		return PgqueQueue.named(name).maxRetries(1).build();
	}

	@Test
	void queuesAreCreatedWithDefaults() {
		this.runner.withPropertyValues("pgque.queue-defaults.ticker-max-count=7", "pgque.queue-defaults.max-retries=9")
			.withBean(PgqueQueue.class, () -> queue("defaults"))
			.run((context) -> assertThat(this.database
				.query("select queue_ticker_max_count, queue_max_retries, queue_ticker_max_lag::text as lag"
						+ " from pgque.queue where queue_name = 'defaults'")
				.get(0)).containsEntry("queue_ticker_max_count", 7)
				.containsEntry("queue_max_retries", 1)
				.containsEntry("lag", "00:00:00.1"));
	}

	@Test
	void queuesOfPropertiesAreCreatedAndReconciled() {
		this.runner
			.withPropertyValues("pgque.queues.from-properties.max-retries=7",
					"pgque.queues[with.dots].rotation-period=30m", "pgque.queues.both.max-retries=3",
					"pgque.queues.both.ticker-idle-period=2m")
			.withBean(PgqueQueue.class, () -> PgqueQueue.named("both").maxRetries(1).tickerMaxCount(5).build())
			.run((context) -> {
				assertThat(context).hasNotFailed();
				assertThat(this.database.values(String.class,
						"select queue_name || ' ' || coalesce(queue_max_retries, -1) || ' ' || queue_ticker_max_count || ' '"
								+ " || queue_rotation_period || ' ' || queue_ticker_idle_period from pgque.queue"
								+ " where queue_name in ('from-properties', 'with.dots', 'both') order by 1"))
					.containsExactly("both 3 5 02:00:00 00:02:00", "from-properties 7 500 02:00:00 00:01:00",
							"with.dots -1 500 00:30:00 00:01:00");
			});
	}

	@Test
	void nothingWhenDisabled() {
		this.runner.withPropertyValues("pgque.enabled=false")
			.run((context) -> assertThat(context.getBeanDefinitionNames())
				.noneMatch((name) -> name.toLowerCase(Locale.ROOT).contains("pgque")));
	}

	@Test
	void nothingWithoutDataSource() {
		new ApplicationContextRunner().withConfiguration(OURS)
			.run((context) -> assertThat(context).hasNotFailed()
				.doesNotHaveBean(PgqueTemplate.class)
				.doesNotHaveBean(PgqueTicker.class)
				.doesNotHaveBean(PgqueSchemaInitializer.class));
	}

	@Test
	void applicationsOwnBeansWin() {
		this.runner.withUserConfiguration(OwnBeans.class)
			.run((context) -> assertThat(context).doesNotHaveBean(PgqueTemplate.class)
				.doesNotHaveBean(PgqueAdmin.class)
				.hasSingleBean(PgqueOperations.class)
				.hasSingleBean(PgqueAdminOperations.class)
				.hasSingleBean(PgqueMessageConverter.class)
				.hasSingleBean(PgqueEventTypeResolver.class)
				.hasSingleBean(PgqueClient.class)
				.hasSingleBean(PgqueTicker.class)
				.hasSingleBean(PgqueSchemaInitializer.class)
				.hasBean("ownTicker"));
	}

	@Test
	void ownCommitListenersAreToldToo() {
		CommitListener own = mock(CommitListener.class);
		this.runner.withBean(CommitListener.class, () -> own)
			.withBean(PgqueQueue.class, () -> queue("told"))
			.run((context) -> {
				context.getBean(PgqueTemplate.class).send("told", "a");
				then(own).should().committed(Set.of("told"));
			});
	}

	/**
	 * That is to say, what their callbacks send before the commit is collected.
	 */
	@Test
	void templateFollowsTheTransactionsOfAllManagers() {
		this.runner.run((context) -> assertThat(context.getBean(ConfigurableTransactionManager.class))
			.satisfies((manager) -> assertThat(manager.getTransactionExecutionListeners()).hasSize(1)));
		this.runner
			.withBean("first", JdbcTransactionManager.class,
					() -> new JdbcTransactionManager(this.database.dataSource()))
			.withBean("second", JdbcTransactionManager.class,
					() -> new JdbcTransactionManager(this.database.dataSource()))
			.run((context) -> assertThat(context.getBeansOfType(ConfigurableTransactionManager.class).values())
				.hasSize(2)
				.allSatisfy((manager) -> assertThat(manager.getTransactionExecutionListeners()).hasSize(1)));
	}

	@Test
	void templateOfTheApplicationFollowsThemToo() {
		TransactionExecutionListener follower = mock(TransactionExecutionListener.class);
		PgqueTemplate own = mock(PgqueTemplate.class);
		given(own.getTransactionExecutionListener()).willReturn(follower);
		this.runner.withBean("own", PgqueTemplate.class, () -> own).run((context) -> {
			context.getBean(TransactionTemplate.class).executeWithoutResult((status) -> {
			});
			then(follower).should().afterBegin(any(), isNull());
			then(follower).should().beforeCommit(any());
			then(follower).should().afterCommit(any(), isNull());
		});
	}

	@Test
	void managersThatTakeNoListenerStopNothing() {
		JdbcTransactionManager immutable = new JdbcTransactionManager(this.database.dataSource());
		immutable.setTransactionExecutionListeners(List.of(new TransactionExecutionListener() {
		}));
		ConfigurableTransactionManager stubborn = mock(ConfigurableTransactionManager.class);
		given(stubborn.getTransactionExecutionListeners()).willThrow(new UnsupportedOperationException("none"));
		this.runner.withBean("immutable", JdbcTransactionManager.class, () -> immutable)
			.withBean("stubborn", ConfigurableTransactionManager.class, () -> stubborn)
			.withUserConfiguration(ScopedManager.class)
			.withInitializer((context) -> context.getBeanFactory().registerScope("thread", new SimpleThreadScope()))
			.run((context) -> {
				assertThat(context).hasNotFailed();
				assertThat(immutable.getTransactionExecutionListeners()).hasSize(2);
				assertThat(context.getBean("scopedTarget.scoped", ConfigurableTransactionManager.class)
					.getTransactionExecutionListeners()).hasSize(1);
			});
	}

	@Test
	void noBeanThatOthersPickByType() {
		new ApplicationContextRunner().withConfiguration(OURS)
			.withUserConfiguration(OneDataSource.class)
			.withInitializer((context) -> context.getBeanFactory().registerSingleton("database", this.database))
			.run((context) -> {
				assertThat(context).hasNotFailed().hasSingleBean(DataSource.class).hasSingleBean(PgqueTemplate.class);
				for (Class<?> type : List.of(Flyway.class, TaskScheduler.class, ScheduledExecutorService.class,
						Executor.class, TransactionOperations.class, TransactionManager.class, JdbcOperations.class,
						JdbcClient.class, ObjectMapper.class, JsonMapper.class, MessageConverter.class,
						MessageHandlerMethodFactory.class, TransactionExecutionListener.class, Clock.class)) {
					assertThat(context).doesNotHaveBean(type);
				}
			});
	}

	@Test
	void undecidedDataSourceIsAnErrorThatSaysWhatToDo() {
		this.runner.withUserConfiguration(OneDataSource.class, SecondDataSource.class)
			.withInitializer((context) -> context.getBeanFactory().registerSingleton("database", this.database))
			.run((context) -> assertThat(context).getFailure()
				.rootCause()
				.isInstanceOf(PgqueException.class)
				.hasMessageContaining("[first, second]")
				.hasMessageContaining("@PgqueDataSource")
				.hasMessageContaining("@Primary"));
	}

	@Test
	void markedDataSourceIsUsed() {
		this.runner.withUserConfiguration(OneDataSource.class, MarkedDataSource.class)
			.withInitializer((context) -> context.getBeanFactory().registerSingleton("database", this.database))
			.withBean(PgqueQueue.class, () -> queue("marked"))
			.run((context) -> {
				assertThat(context).hasNotFailed();
				context.getBean(PgqueTemplate.class).send("marked", "x");
				assertThat(context.getBean(MarkedDataSource.class).used).isTrue();
			});
	}

	@Test
	void primaryDataSourceIsUsed() {
		this.runner.withUserConfiguration(OneDataSource.class, PrimaryDataSource.class)
			.withInitializer((context) -> context.getBeanFactory().registerSingleton("database", this.database))
			.run((context) -> assertThat(context).hasNotFailed().hasSingleBean(PgqueTemplate.class));
	}

	@Test
	void twoMarkedDataSourcesAreAnError() {
		this.runner.withUserConfiguration(MarkedDataSource.class, SecondMarkedDataSource.class)
			.withInitializer((context) -> context.getBeanFactory().registerSingleton("database", this.database))
			.run((context) -> assertThat(context).getFailure().rootCause().hasMessageContaining("Mark one only"));
	}

	@Test
	void lazyInitializationStopsNothing() {
		this.runner
			.withInitializer(
					(context) -> context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor()))
			.withBean(PgqueQueue.class, () -> queue("lazy"))
			.run((context) -> {
				ConfigurableListableBeanFactory beans = context.getBeanFactory();
				assertThat(beans.containsSingleton("pgqueTicker")).isTrue();
				assertThat(beans.containsSingleton("pgqueTemplate")).isFalse();
				assertThat(context.getBean(PgqueTicker.class).isRunning()).isTrue();
				assertThat(this.database.values(String.class, "select queue_name from pgque.queue")).contains("lazy");
			});
	}

	@Test
	void nothingIsLeftRunning() {
		this.runner.run((context) -> {
			assertThat(threads()).contains("pgque-ticker");
			context.close();
			assertThat(threads()).doesNotContain("pgque-ticker");
		});
	}

	private static List<String> threads() {
		return Thread.getAllStackTraces().keySet().stream().map(Thread::getName).toList();
	}

	@Test
	void tickerCanBeSwitchedOff() {
		this.runner.withPropertyValues("pgque.ticker.mode=off")
			.run((context) -> assertThat(context.getBean(PgqueTicker.class).isRunning()).isFalse());
	}

	@Test
	void propertiesReachWhoTheyAreFor() {
		this.runner.withPropertyValues("pgque.template.require-transaction=true", "pgque.headers.column=none",
				"pgque.admin.auto-create=false", "pgque.ticker.interval=250ms", "pgque.ticker.on-commit=false",
				"pgque.ticker.min-interval=0", "pgque.ticker.retry-interval=2s", "pgque.ticker.maintenance-interval=3s",
				"pgque.ticker.rotation-interval=4s", "pgque.ticker.mode=always")
			.run((context) -> {
				PgqueTemplate template = context.getBean(PgqueTemplate.class);
				assertThatExceptionOfType(PgqueException.class).isThrownBy(() -> template.send("x", "y"))
					.withMessageContaining("require-transaction");
				assertThatExceptionOfType(PgqueException.class)
					.isThrownBy(() -> template.send("x", (spec) -> spec.header("a", "b")))
					.withMessageContaining("headers are disabled");
				assertThatExceptionOfType(PgqueException.class)
					.isThrownBy(() -> context.getBean(PgqueAdmin.class).ensureQueue("missing"))
					.withMessageContaining("auto-create is off");
				assertThat(context.getBean(PgqueTicker.class).getSettings())
					.hasToString("TickerSettings[mode=ALWAYS, interval=PT0.25S, onCommit=false, minInterval=PT0S, "
							+ "retryInterval=PT2S, maintenanceInterval=PT3S, rotationInterval=PT4S]");
			});
	}

	@Test
	void jackson3IsUsedWhenTheApplicationHasIt() {
		this.runner.run((context) -> assertThat(context).getBean(PgqueMessageConverter.class)
			.isInstanceOf(Jackson3MessageConverter.class));
	}

	@Test
	void jackson2IsUsedOtherwise() {
		this.runner.withClassLoader(new FilteredClassLoader("tools.jackson"))
			.run((context) -> assertThat(context).hasNotFailed()
				.getBean(PgqueMessageConverter.class)
				.isInstanceOf(Jackson2MessageConverter.class));
		new ApplicationContextRunner().withConfiguration(OURS)
			.withUserConfiguration(OneDataSource.class)
			.withInitializer((context) -> context.getBeanFactory().registerSingleton("database", this.database))
			.withBean(ObjectMapper.class,
					() -> new ObjectMapper().setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE))
			.run((context) -> assertThat(context.getBean(PgqueMessageConverter.class).toText(new Snake("x")))
				.isEqualTo("{\"long_tail\":\"x\"}"));
	}

	@Test
	void otherDatabaseFailsWhereItIsUsed() {
		new ApplicationContextRunner().withConfiguration(OURS)
			.withBean(DataSource.class, () -> new DriverManagerDataSource("jdbc:h2:mem:boot", "sa", ""))
			.run((context) -> {
				assertThat(context).hasNotFailed();
				assertThatExceptionOfType(UnsupportedDatabaseException.class)
					.isThrownBy(() -> context.getBean(PgqueTemplate.class).send("q", "x"))
					.withMessageContaining("H2");
			});
		new ApplicationContextRunner().withConfiguration(OURS)
			.withBean(DataSource.class, () -> new DriverManagerDataSource("jdbc:h2:mem:boot", "sa", ""))
			.withBean(PgqueQueue.class, () -> queue("q"))
			.run((context) -> assertThat(context).getFailure().isInstanceOf(UnsupportedDatabaseException.class));
	}

	record Snake(String longTail) {
	}

	@Configuration(proxyBeanMethods = false)
	static class OneDataSource {

		@Bean
		DataSource first(TestDatabase database) {
			return database.dataSource();
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class SecondDataSource {

		@Bean
		DataSource second(TestDatabase database) {
			return database.dataSource();
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class PrimaryDataSource {

		@Bean
		@Primary
		DataSource primary(TestDatabase database) {
			return database.dataSource();
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class MarkedDataSource {

		private boolean used;

		@Bean(defaultCandidate = false)
		@PgqueDataSource
		DataSource marked(TestDatabase database) {
			return new DelegatingDataSource(database.dataSource()) {

				@Override
				public Connection getConnection() throws SQLException {
					MarkedDataSource.this.used = true;
					return super.getConnection();
				}

			};
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class SecondMarkedDataSource {

		@Bean
		@PgqueDataSource
		DataSource alsoMarked(TestDatabase database) {
			return database.dataSource();
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class ScopedManager {

		@Bean
		@Scope(scopeName = "thread", proxyMode = ScopedProxyMode.TARGET_CLASS)
		JdbcTransactionManager scoped(DataSource dataSource) {
			return new JdbcTransactionManager(dataSource);
		}

	}

	@Configuration(proxyBeanMethods = false)
	static class OwnBeans {

		@Bean
		PgqueOperations ownOperations() {
			return mock(PgqueOperations.class);
		}

		@Bean
		PgqueAdminOperations ownAdmin() {
			return mock(PgqueAdminOperations.class);
		}

		@Bean
		PgqueMessageConverter ownConverter() {
			return mock(PgqueMessageConverter.class);
		}

		@Bean
		PgqueEventTypeResolver ownResolver() {
			return mock(PgqueEventTypeResolver.class);
		}

		@Bean
		PgqueClient ownClient(DataSource dataSource) {
			return new PgqueClient(dataSource, Duration.ofSeconds(1));
		}

		@Bean
		PgqueTicker ownTicker(DataSource dataSource) {
			return new PgqueTicker(dataSource, TickerSettings.DEFAULTS);
		}

		@Bean
		PgqueSchemaInitializer ownInitializer() {
			return new PgqueSchemaInitializer(mock(PgqueSchemaMigrator.class), SchemaMode.NONE);
		}

	}

}
