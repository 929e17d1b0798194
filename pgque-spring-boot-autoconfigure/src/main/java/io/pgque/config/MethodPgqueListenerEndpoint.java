package io.pgque.config;

import java.lang.reflect.Type;

import io.pgque.listener.GenericPgqueListener;
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
public final class MethodPgqueListenerEndpoint extends AbstractPgqueListenerEndpoint {

	private final ListenerMethod method;

	private @Nullable ConfigurableBeanFactory beanFactory;

	/**
	 * Create an endpoint.
	 * @param method the method
	 * @param queue the queue name
	 */
	public MethodPgqueListenerEndpoint(ListenerMethod method, String queue) {
		super(queue);
		Assert.notNull(method, "method must not be null");
		this.method = method;
	}

	/**
	 * Set what resolves placeholders and expressions in annotations of parameters.
	 * @param beanFactory the bean factory
	 */
	public void setBeanFactory(@Nullable ConfigurableBeanFactory beanFactory) {
		this.beanFactory = beanFactory;
	}

	@Override
	public @Nullable Type getPayloadType() {
		return this.method.getPayloadType();
	}

	@Override
	public boolean isAcknowledging() {
		return this.method.isAcknowledging();
	}

	@Override
	public GenericPgqueListener createListener(PgqueMessageConverter converter) {
		return this.method.createListener(converter, this.beanFactory);
	}

	@Override
	public String getDescription() {
		return this.method.getDescription();
	}

}
