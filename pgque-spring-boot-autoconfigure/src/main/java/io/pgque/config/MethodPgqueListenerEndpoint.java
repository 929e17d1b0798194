package io.pgque.config;

import java.lang.reflect.Type;

import io.pgque.listener.GenericPgqueListener;
import io.pgque.listener.adapter.HandlerServices;
import io.pgque.listener.adapter.ListenerMethod;
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

	private @Nullable String replyQueue;

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
	public GenericPgqueListener createListener(HandlerServices services) {
		return this.method.createListener(services, this.beanFactory, this.replyQueue);
	}

	@Override
	public @Nullable String getReplyQueue() {
		return this.replyQueue;
	}

	/**
	 * Set where the return value of the method goes.
	 * @param replyQueue the queue, {@code null} for nowhere
	 */
	public void setReplyQueue(@Nullable String replyQueue) {
		this.replyQueue = replyQueue;
	}

	@Override
	public String getDescription() {
		return this.method.getDescription();
	}

}
