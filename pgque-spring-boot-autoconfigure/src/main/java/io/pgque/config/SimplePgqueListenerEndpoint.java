package io.pgque.config;

import java.lang.reflect.Type;

import io.pgque.listener.GenericPgqueListener;
import io.pgque.listener.PgqueAcknowledgingMessageListener;
import io.pgque.listener.PgqueBatchListener;
import io.pgque.listener.PgqueReplyingMessageListener;
import io.pgque.listener.adapter.HandlerServices;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * A handler that is an object of the application, registered by a
 * {@link PgqueListenerConfigurer}. It takes messages as they are received, with the text
 * of their payload.
 *
 * <pre class="code">
 * SimplePgqueListenerEndpoint endpoint = new SimplePgqueListenerEndpoint("orders",
 * 		(PgqueMessageListener) (message) -&gt; archive(message));
 * endpoint.setConsumer("archive");
 * registrar.registerEndpoint(endpoint);
 * </pre>
 *
 * @since 0.1.0
 */
public final class SimplePgqueListenerEndpoint extends AbstractPgqueListenerEndpoint {

	private final GenericPgqueListener listener;

	private @Nullable String replyQueue;

	/**
	 * Create an endpoint.
	 * @param queue the queue name
	 * @param listener the handler: a {@link io.pgque.listener.PgqueMessageListener}, a
	 * {@link PgqueAcknowledgingMessageListener}, a {@link PgqueReplyingMessageListener}
	 * or a {@link PgqueBatchListener}
	 */
	public SimplePgqueListenerEndpoint(String queue, GenericPgqueListener listener) {
		super(queue);
		Assert.notNull(listener, "listener must not be null");
		this.listener = listener;
	}

	@Override
	public @Nullable Type getPayloadType() {
		return null;
	}

	@Override
	public boolean isAcknowledging() {
		return this.listener instanceof PgqueAcknowledgingMessageListener
				|| this.listener instanceof PgqueReplyingMessageListener || this.listener instanceof PgqueBatchListener;
	}

	@Override
	public GenericPgqueListener createListener(HandlerServices services) {
		return this.listener;
	}

	@Override
	public @Nullable String getReplyQueue() {
		return this.replyQueue;
	}

	/**
	 * Set where replies go, so that the queue is there. Needed for a
	 * {@link PgqueReplyingMessageListener}, whose replies name the queue.
	 * @param replyQueue the queue, {@code null} for none
	 */
	public void setReplyQueue(@Nullable String replyQueue) {
		this.replyQueue = replyQueue;
	}

	@Override
	public String getDescription() {
		return this.listener.getClass().getName() + " (registered for queue '" + getQueue() + "'"
				+ ((getId() != null) ? ", id '" + getId() + "'" : "") + ")";
	}

}
