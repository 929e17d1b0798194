package io.pgque.config;

import java.lang.reflect.Type;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Set;

import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageListener;
import io.pgque.listener.adapter.ListenerMethod;
import io.pgque.support.converter.PgqueMessageConverter;
import org.jspecify.annotations.Nullable;

import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.util.Assert;

/**
 * A handler that is a method of a bean.
 *
 * @since 0.1.0
 */
public final class MethodPgqueListenerEndpoint implements PgqueListenerEndpoint {

	private final ListenerMethod method;

	private final String queue;

	private @Nullable ConfigurableBeanFactory beanFactory;

	private @Nullable String id;

	private @Nullable String consumer;

	private Set<String> types = Set.of();

	private @Nullable Boolean autoStartup;

	private @Nullable PgqueErrorHandler errorHandler;

	/**
	 * Create an endpoint.
	 * @param method the method
	 * @param queue the queue name
	 */
	public MethodPgqueListenerEndpoint(ListenerMethod method, String queue) {
		Assert.notNull(method, "method must not be null");
		Assert.notNull(queue, "queue must not be null");
		this.method = method;
		this.queue = queue;
	}

	/**
	 * Set what resolves placeholders and expressions in annotations of parameters.
	 * @param beanFactory the bean factory
	 */
	public void setBeanFactory(@Nullable ConfigurableBeanFactory beanFactory) {
		this.beanFactory = beanFactory;
	}

	/**
	 * Set the id of the container.
	 * @param id the id, {@code null} to have one made
	 */
	public void setId(@Nullable String id) {
		this.id = id;
	}

	/**
	 * Set the consumer.
	 * @param consumer the consumer name, {@code null} for the default
	 */
	public void setConsumer(@Nullable String consumer) {
		this.consumer = consumer;
	}

	/**
	 * Set the event types that the handler takes.
	 * @param types the types, none for the default
	 */
	public void setTypes(Collection<String> types) {
		this.types = Set.copyOf(new LinkedHashSet<>(types));
	}

	/**
	 * Set whether the container starts with the application.
	 * @param autoStartup whether it does, {@code null} for the default
	 */
	public void setAutoStartup(@Nullable Boolean autoStartup) {
		this.autoStartup = autoStartup;
	}

	/**
	 * Set the error handler of the container.
	 * @param errorHandler the error handler, {@code null} for the default
	 */
	public void setErrorHandler(@Nullable PgqueErrorHandler errorHandler) {
		this.errorHandler = errorHandler;
	}

	@Override
	public @Nullable String getId() {
		return this.id;
	}

	@Override
	public String getQueue() {
		return this.queue;
	}

	@Override
	public @Nullable String getConsumer() {
		return this.consumer;
	}

	@Override
	public Set<String> getTypes() {
		return this.types;
	}

	@Override
	public @Nullable Type getPayloadType() {
		return this.method.getPayloadType();
	}

	@Override
	public @Nullable Boolean getAutoStartup() {
		return this.autoStartup;
	}

	@Override
	public @Nullable PgqueErrorHandler getErrorHandler() {
		return this.errorHandler;
	}

	@Override
	public PgqueMessageListener createListener(PgqueMessageConverter converter) {
		return this.method.createListener(converter, this.beanFactory);
	}

	@Override
	public String getDescription() {
		return this.method.getDescription();
	}

	@Override
	public String toString() {
		return getDescription();
	}

}
