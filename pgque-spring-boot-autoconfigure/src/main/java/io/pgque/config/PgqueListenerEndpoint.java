package io.pgque.config;

import java.lang.reflect.Type;
import java.util.Set;

import io.pgque.listener.AckMode;
import io.pgque.listener.GenericPgqueListener;
import io.pgque.listener.ListenerMode;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageFilter;
import io.pgque.listener.adapter.HandlerServices;
import org.jspecify.annotations.Nullable;

/**
 * One handler of a consumer. The endpoints of the same consumer of a queue share one
 * container and one cursor, and messages are dispatched between them by event type.
 *
 * @since 0.1.0
 */
public interface PgqueListenerEndpoint {

	/**
	 * Return the id of the container.
	 * @return the id, or {@code null} to have one made from queue and consumer
	 */
	@Nullable String getId();

	/**
	 * Return the queue.
	 * @return the queue name
	 */
	String getQueue();

	/**
	 * Return the consumer.
	 * @return the consumer name, or {@code null} for the id, or else the default of the
	 * container factory
	 */
	@Nullable String getConsumer();

	/**
	 * Return the event types that the handler takes.
	 * @return the types; empty when it takes what no other handler of the consumer takes,
	 * or the type of its payload class where several leave this empty
	 */
	Set<String> getTypes();

	/**
	 * Return the type to which payloads are converted.
	 * @return the type, or {@code null} when the handler takes payloads of any kind
	 */
	@Nullable Type getPayloadType();

	/**
	 * Return whether the container starts with the application.
	 * @return whether it does, or {@code null} for the default of the container factory
	 */
	@Nullable Boolean getAutoStartup();

	/**
	 * Return the error handler of the container.
	 * @return the error handler, or {@code null} for that of the container factory
	 */
	@Nullable PgqueErrorHandler getErrorHandler();

	/**
	 * Return which messages the handler is to have.
	 * @return the filter, or {@code null} for all
	 */
	@Nullable PgqueMessageFilter getFilter();

	/**
	 * Return what changes the properties of the container.
	 * @return the customizer, or {@code null} for none
	 */
	@Nullable PgqueContainerCustomizer getContainerCustomizer();

	/**
	 * Return who says that a message is done.
	 * @return the mode, or {@code null} for that of the container factory
	 */
	@Nullable AckMode getAckMode();

	/**
	 * Return how the instances of the application share the consumer.
	 * @return the mode, or {@code null} for that of the container factory
	 */
	default @Nullable ListenerMode getMode() {
		return null;
	}

	/**
	 * Return how many handlers run at the same time in this instance.
	 * @return the number, or {@code null} for that of the container factory
	 */
	default @Nullable Integer getConcurrency() {
		return null;
	}

	/**
	 * Return the number of slots of a partitioned consumer.
	 * @return the number, or {@code null} for that of the container factory
	 */
	default @Nullable Integer getPartitions() {
		return null;
	}

	/**
	 * Return whether a batch is received, handled and settled in one transaction.
	 * @return whether it is, or {@code null} for the default of the container factory
	 */
	default @Nullable Boolean getTransactional() {
		return null;
	}

	/**
	 * Return whether the handler can acknowledge, as {@link AckMode#MANUAL} needs it.
	 * @return whether it can
	 */
	boolean isAcknowledging();

	/**
	 * Create the listener that calls the handler.
	 * @param services what it may need besides messages
	 * @return the listener
	 * @throws io.pgque.listener.InvalidListenerException when something it needs is
	 * missing
	 */
	GenericPgqueListener createListener(HandlerServices services);

	/**
	 * Return where the handler sends replies.
	 * @return the queue, or {@code null} when it doesn't reply
	 */
	@Nullable String getReplyQueue();

	/**
	 * Return how messages name the handler.
	 * @return a phrase, such as the signature of a method
	 */
	String getDescription();

}
