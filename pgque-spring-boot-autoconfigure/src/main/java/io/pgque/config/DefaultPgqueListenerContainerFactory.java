package io.pgque.config;

import java.util.List;
import java.util.function.Supplier;

import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.core.PgqueEventTypeResolver;
import io.pgque.listener.DefaultPgqueErrorHandler;
import io.pgque.listener.DefaultPgqueMessageListenerContainer;
import io.pgque.listener.InstanceHeartbeat;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.PgqueBatchInterceptor;
import io.pgque.listener.PgqueContainerProperties;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageInterceptor;
import io.pgque.listener.PgqueMessageListenerContainer;
import io.pgque.listener.ReplySender;
import io.pgque.listener.WakeupListener;
import io.pgque.listener.adapter.HandlerServices;
import io.pgque.support.converter.PgqueMessageConverter;
import org.jspecify.annotations.Nullable;

import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.ApplicationEventPublisherAware;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.util.Assert;
import org.springframework.validation.Validator;

/**
 * Creates {@link DefaultPgqueMessageListenerContainer}s that share what is set here.
 *
 * @since 0.1.0
 */
public class DefaultPgqueListenerContainerFactory
		implements PgqueListenerContainerFactory<DefaultPgqueMessageListenerContainer>, ApplicationEventPublisherAware {

	private final PgqueClient client;

	private final PgqueAdminOperations admin;

	private final PgqueMessageConverter messageConverter;

	private final PgqueEventTypeResolver eventTypeResolver;

	private final PgqueContainerProperties containerProperties = new PgqueContainerProperties();

	private Supplier<@Nullable PgqueErrorHandler> errorHandler = () -> null;

	private List<PgqueMessageInterceptor> messageInterceptors = List.of();

	private List<PgqueBatchInterceptor> batchInterceptors = List.of();

	private @Nullable ReplySender replySender;

	private @Nullable Validator validator;

	private @Nullable String defaultConsumer;

	private boolean autoStartup = true;

	private @Nullable WakeupListener wakeupListener;

	private @Nullable InstanceHeartbeat heartbeat;

	private Supplier<@Nullable PlatformTransactionManager> transactionManager = () -> null;

	private @Nullable Integer poolSize;

	/**
	 * Connections that transactional containers hold while they work.
	 */
	private int heldConnections;

	private @Nullable ApplicationEventPublisher eventPublisher;

	/**
	 * Create a factory.
	 * @param client receives and settles; its statements must commit by themselves
	 * @param admin makes sure of queues
	 * @param messageConverter converts payloads
	 * @param eventTypeResolver finds the event type of payload classes
	 */
	public DefaultPgqueListenerContainerFactory(PgqueClient client, PgqueAdminOperations admin,
			PgqueMessageConverter messageConverter, PgqueEventTypeResolver eventTypeResolver) {
		Assert.notNull(client, "client must not be null");
		Assert.notNull(admin, "admin must not be null");
		Assert.notNull(messageConverter, "messageConverter must not be null");
		Assert.notNull(eventTypeResolver, "eventTypeResolver must not be null");
		this.client = client;
		this.admin = admin;
		this.messageConverter = messageConverter;
		this.eventTypeResolver = eventTypeResolver;
	}

	/**
	 * Return how the containers work, to be changed before they are created.
	 * @return the properties
	 */
	public PgqueContainerProperties getContainerProperties() {
		return this.containerProperties;
	}

	/**
	 * Set the error handler of containers whose listeners name none. Without one, each
	 * container has a {@link DefaultPgqueErrorHandler} with the retries of its
	 * properties.
	 * @param errorHandler the error handler
	 */
	public void setErrorHandler(PgqueErrorHandler errorHandler) {
		Assert.notNull(errorHandler, "errorHandler must not be null");
		this.errorHandler = () -> errorHandler;
	}

	/**
	 * Set what gives the error handler of containers whose listeners name none. It is
	 * asked when the first such container is created.
	 * @param errorHandler gives the error handler, or {@code null} for the default
	 */
	public void setErrorHandlerSupplier(Supplier<@Nullable PgqueErrorHandler> errorHandler) {
		Assert.notNull(errorHandler, "errorHandler must not be null");
		this.errorHandler = errorHandler;
	}

	/**
	 * Set what is called around handlers of one message.
	 * @param interceptors the interceptors, in their order
	 */
	public void setMessageInterceptors(List<PgqueMessageInterceptor> interceptors) {
		this.messageInterceptors = List.copyOf(interceptors);
	}

	/**
	 * Set what is called around handlers of several messages.
	 * @param interceptors the interceptors, in their order
	 */
	public void setBatchInterceptors(List<PgqueBatchInterceptor> interceptors) {
		this.batchInterceptors = List.copyOf(interceptors);
	}

	/**
	 * Set what sends the replies of handlers.
	 * @param replySender the sender, {@code null} when none may reply
	 */
	public void setReplySender(@Nullable ReplySender replySender) {
		this.replySender = replySender;
	}

	/**
	 * Set what validates payloads whose parameters ask for it.
	 * @param validator the validator, {@code null} for none
	 */
	public void setValidator(@Nullable Validator validator) {
		this.validator = validator;
	}

	/**
	 * Set the consumer of listeners that name none.
	 * @param defaultConsumer the consumer name, {@code null} for none
	 */
	public void setDefaultConsumer(@Nullable String defaultConsumer) {
		this.defaultConsumer = defaultConsumer;
	}

	@Override
	public @Nullable String getDefaultConsumer() {
		return this.defaultConsumer;
	}

	/**
	 * Set whether containers start with the application unless their listeners say
	 * otherwise.
	 * @param autoStartup whether they do
	 */
	public void setAutoStartup(boolean autoStartup) {
		this.autoStartup = autoStartup;
	}

	/**
	 * Set what wakes containers when there are new messages.
	 * @param wakeupListener the listener, {@code null} to poll only
	 */
	public void setWakeupListener(@Nullable WakeupListener wakeupListener) {
		this.wakeupListener = wakeupListener;
	}

	/**
	 * Set what tells the other instances of the application that this one is alive.
	 * @param heartbeat the heartbeat, {@code null} to let each container do so itself
	 */
	public void setInstanceHeartbeat(@Nullable InstanceHeartbeat heartbeat) {
		this.heartbeat = heartbeat;
	}

	/**
	 * Set the manager of the transactions of transactional containers.
	 * @param transactionManager gives it when it is needed, {@code null} when there is
	 * none
	 */
	public void setTransactionManager(Supplier<@Nullable PlatformTransactionManager> transactionManager) {
		Assert.notNull(transactionManager, "transactionManager must not be null");
		this.transactionManager = transactionManager;
	}

	/**
	 * Set how many connections the application's pool has, which transactional containers
	 * hold for as long as their handlers run.
	 * @param poolSize the number, {@code null} when it is not known
	 */
	public void setPoolSize(@Nullable Integer poolSize) {
		this.poolSize = poolSize;
	}

	@Override
	public void setApplicationEventPublisher(ApplicationEventPublisher eventPublisher) {
		this.eventPublisher = eventPublisher;
	}

	@Override
	public DefaultPgqueMessageListenerContainer createContainer(PgqueListenerGroup group) {
		PgqueContainerProperties properties = new PgqueContainerProperties(this.containerProperties);
		properties.setAckMode(group.getAckMode(properties.getAckMode()));
		group.applySharing(properties);
		PgqueContainerCustomizer customizer = group.getContainerCustomizer();
		if (customizer != null) {
			customizer.customize(group.getIdentity(), properties);
		}
		DefaultPgqueMessageListenerContainer container = new DefaultPgqueMessageListenerContainer(group.getIdentity(),
				this.client, this.admin,
				group.createRoutes(new HandlerServices(this.messageConverter, this.eventTypeResolver, this.validator)),
				errorHandler(group, properties), properties);
		Boolean autoStartup = group.getAutoStartup();
		container.setAutoStartup((autoStartup != null) ? autoStartup : this.autoStartup);
		if (this.replySender == null && !group.getReplyQueues().isEmpty()) {
			throw new InvalidListenerException(
					"Listener " + group.getDescription() + " replies to queue " + group.getReplyQueues()
							+ ", but its container factory sends no replies",
					"Set the replySender of the container factory");
		}
		container.setReplies(this.replySender, group.getReplyQueues());
		container.setInterceptors(this.messageInterceptors, this.batchInterceptors);
		container.setWakeupListener(this.wakeupListener);
		if (this.heartbeat != null) {
			container.setInstanceHeartbeat(this.heartbeat);
		}
		container.setApplicationEventPublisher(this.eventPublisher);
		if (properties.isTransactional()) {
			reserveConnections(container, properties);
			container.setTransactionManager(this.transactionManager.get());
		}
		return container;
	}

	/**
	 * Handlers that wait for a connection, while others that wait hold all of them, would
	 * wait for ever.
	 */
	private void reserveConnections(PgqueMessageListenerContainer container, PgqueContainerProperties properties) {
		this.heldConnections += properties.getConcurrency();
		if (this.poolSize != null && this.heldConnections >= this.poolSize) {
			throw new InvalidListenerException(
					"Transactional listeners up to " + container + " hold " + this.heldConnections
							+ " connections while their handlers run, and one more is needed for the "
							+ "rest, but the pool has " + this.poolSize,
					"Set spring.datasource.hikari.maximum-pool-size to " + (this.heldConnections + 1)
							+ " or more, or lower concurrency");
		}
	}

	private PgqueErrorHandler errorHandler(PgqueListenerGroup group, PgqueContainerProperties properties) {
		PgqueErrorHandler own = group.getErrorHandler();
		PgqueErrorHandler errorHandler = (own != null) ? own : this.errorHandler.get();
		return (errorHandler != null) ? errorHandler
				: new DefaultPgqueErrorHandler(properties.getBackOff(), properties.getRetryRules());
	}

}
