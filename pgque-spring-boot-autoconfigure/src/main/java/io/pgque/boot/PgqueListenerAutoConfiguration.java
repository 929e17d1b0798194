package io.pgque.boot;

import java.time.Duration;

import javax.sql.DataSource;

import io.pgque.PgqueException;
import io.pgque.annotation.EnablePgque;
import io.pgque.boot.PgqueDataSourceConfiguration.ChosenDataSource;
import io.pgque.client.PgqueClient;
import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.config.PgqueContainerFactoryCustomizer;
import io.pgque.config.PgqueListenerBeanNames;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.core.PgqueEventTypeResolver;
import io.pgque.core.PgqueOperations;
import io.pgque.listener.BackOffSettings;
import io.pgque.listener.HandlingObserver;
import io.pgque.listener.InstanceHeartbeat;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.PgqueBatchInterceptor;
import io.pgque.listener.PgqueContainerProperties;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageInterceptor;
import io.pgque.listener.ReplySender;
import io.pgque.listener.RetryRules;
import io.pgque.listener.StartPosition;
import io.pgque.listener.WakeupListener;
import io.pgque.observation.CompositeHandlingObserver;
import io.pgque.support.converter.PayloadUpcaster;
import io.pgque.support.converter.PgqueMessageConverter;
import io.pgque.support.converter.UpcastingMessageConverter;
import org.jspecify.annotations.Nullable;

import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.LazyInitializationExcludeFilter;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.util.StringUtils;
import org.springframework.validation.Validator;

/**
 * Auto-configuration of listeners.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = PgqueAutoConfiguration.class,
		afterName = { "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
				"org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration" })
@ConditionalOnBooleanProperty(name = "pgque.enabled", matchIfMissing = true)
@ConditionalOnBean(DataSource.class)
@EnableConfigurationProperties(PgqueProperties.class)
public final class PgqueListenerAutoConfiguration {

	private static final Duration HEARTBEAT_TIMEOUT = Duration.ofSeconds(3);

	@Bean(name = PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY)
	@ConditionalOnMissingBean(name = PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY)
	@DependsOnDatabaseInitialization
	DefaultPgqueListenerContainerFactory pgqueListenerContainerFactory(ChosenDataSource chosen,
			PgqueProperties properties, PgqueAdminOperations admin, PgqueMessageConverter converter,
			ObjectProvider<PayloadUpcaster> upcasters, PgqueEventTypeResolver eventTypeResolver,
			ObjectProvider<PgqueErrorHandler> errorHandlers, ObjectProvider<PgqueOperations> operations,
			ObjectProvider<Validator> validators, ObjectProvider<PgqueMessageInterceptor> messageInterceptors,
			ObjectProvider<PgqueBatchInterceptor> batchInterceptors, ObjectProvider<HandlingObserver> handlingObservers,
			ObjectProvider<WakeupListener> wakeupListeners, InstanceHeartbeat heartbeat,
			ObjectProvider<PlatformTransactionManager> transactionManagers,
			ObjectProvider<PgqueContainerFactoryCustomizer> customizers, Environment environment) {
		DefaultPgqueListenerContainerFactory factory = new DefaultPgqueListenerContainerFactory(
				new PgqueClient(DirectDataSource.forSettling(chosen.dataSource(), properties.listener().connection()),
						properties.listener().statementTimeout()),
				admin, new UpcastingMessageConverter(converter, upcasters.orderedStream().toList()), eventTypeResolver);
		PgqueProperties.Listener listener = properties.listener();
		apply(properties, factory.getContainerProperties());
		factory.getContainerProperties()
			.setHandlingObserver(CompositeHandlingObserver.of(handlingObservers.orderedStream().toList()));
		factory.getContainerProperties().setVirtualThreads(virtualThreads(environment));
		factory.setAutoStartup(listener.autoStartup());
		factory.setDefaultConsumer(StringUtils.hasText(listener.consumer()) ? listener.consumer()
				: environment.getProperty("spring.application.name"));
		factory.setErrorHandlerSupplier(() -> chosen(errorHandlers));
		operations.ifUnique((template) -> factory.setReplySender(new ReplySender(template,
				new TransactionTemplate(new DataSourceTransactionManager(chosen.dataSource())))));
		validators.ifUnique(factory::setValidator);
		factory.setMessageInterceptors(messageInterceptors.orderedStream().toList());
		factory.setBatchInterceptors(batchInterceptors.orderedStream().toList());
		factory.setWakeupListener(wakeupListeners.getIfUnique());
		factory.setInstanceHeartbeat(heartbeat);
		factory.setTransactionManager(transactionManagers::getIfUnique);
		factory.setPoolSize(PoolProperties.maximumSize(chosen.dataSource()));
		customizers.orderedStream().forEach((customizer) -> customizer.customize(factory));
		return factory;
	}

	private static StartPosition startFrom(String text) {
		try {
			return StartPosition.parse(text);
		}
		catch (IllegalArgumentException ex) {
			throw new PgqueException("pgque.listener.start-from is '" + text + "'",
					"Set it to 'now', 'earliest' or a time with an offset, such as 2026-01-31T12:00:00Z", ex);
		}
	}

	/**
	 * What Boot's own class for it says, which is in another package in each of its
	 * lines.
	 */
	private static boolean virtualThreads(Environment environment) {
		return Runtime.version().feature() >= 21
				&& environment.getProperty("spring.threads.virtual.enabled", boolean.class, false);
	}

	private static void apply(PgqueProperties properties, PgqueContainerProperties container) {
		PgqueProperties.Listener listener = properties.listener();
		container.setSubscribe(listener.subscribe());
		container.setPollInterval(listener.pollInterval());
		container.setFallbackPollInterval(listener.fallbackPollInterval());
		container.setMode(listener.mode());
		container.setConcurrency(listener.concurrency());
		container.setPartitions(listener.partitions());
		container.setTransactional(listener.transactional());
		container.setStartFrom(startFrom(listener.startFrom()));
		container.setMaxHandlingTime(listener.maxHandlingTime());
		container.setStuckHandlerAction(listener.stuckHandlerAction());
		container.setIdleEventInterval(listener.idleEventInterval());
		container.setDeadInterval(listener.deadInterval());
		container.setLeaseDuration(listener.leaseDuration());
		container.setPageSize(listener.pageSize());
		container.setPageBytes(listener.pageBytes().toBytes());
		container.setUnknownTypePolicy(listener.unknownTypePolicy());
		container.setShutdownTimeout(listener.shutdownTimeout());
		container.setHeaderColumn(properties.headers().column());
		container.setAckMode(listener.ackMode());
		container.setFailureBrakeThreshold(listener.failureBrake().threshold());
		container.setFailureBrakePause(listener.failureBrake().pause());
		container.setFailureBrakeMaxPause(listener.failureBrake().maxPause());
		container.setHoldFailedKeys(listener.holdFailedKeys());
		container.setBackOff(backOff(listener.retry()));
		container.setRetryRules(new RetryRules(listener.retry().includes(), listener.retry().excludes()));
	}

	private static BackOffSettings backOff(PgqueProperties.Retry retry) {
		return new BackOffSettings(retry.delay(), retry.multiplier(), retry.maxDelay(), retry.jitter());
	}

	private static @Nullable PgqueErrorHandler chosen(ObjectProvider<PgqueErrorHandler> errorHandlers) {
		try {
			return errorHandlers.getIfAvailable();
		}
		catch (NoUniqueBeanDefinitionException ex) {
			throw new InvalidListenerException(
					"There are several PgqueErrorHandler beans, " + ex.getBeanNamesFound()
							+ ", and none of them is chosen for listeners that name no 'errorHandler'",
					"Mark one with @Primary, or those that listeners name with @Bean(defaultCandidate = false)", ex);
		}
	}

	@Bean
	@ConditionalOnMissingBean
	@ConditionalOnProperty(name = "pgque.listener.wakeup", havingValue = "notify", matchIfMissing = true)
	@Nullable WakeupListener pgqueWakeupListener(ChosenDataSource chosen, PgqueProperties properties) {
		DataSource dataSource = DirectDataSource.forWakeups(chosen.dataSource(), properties.listener().connection());
		return (dataSource != null) ? new WakeupListener(dataSource) : null;
	}

	@Bean
	@ConditionalOnMissingBean
	InstanceHeartbeat pgqueInstanceHeartbeat(ChosenDataSource chosen, PgqueProperties properties) {
		return new InstanceHeartbeat(new PgqueClient(chosen.dataSource(), HEARTBEAT_TIMEOUT),
				DirectDataSource.forHeartbeat(chosen.dataSource(), properties.listener().connection()));
	}

	/**
	 * Nobody asks for the registry, and without it nothing is consumed.
	 */
	@Bean
	static LazyInitializationExcludeFilter eagerPgqueListenerEndpointRegistry() {
		return LazyInitializationExcludeFilter.forBeanTypes(PgqueListenerEndpointRegistry.class);
	}

	@Configuration(proxyBeanMethods = false)
	@EnablePgque
	@ConditionalOnMissingBean(name = PgqueListenerBeanNames.ANNOTATION_PROCESSOR)
	static class EnablePgqueConfiguration {

	}

}
