package io.pgque.support;

import java.time.OffsetDateTime;
import java.util.Map;

import org.jspecify.annotations.Nullable;

/**
 * What every received message has in common. Error handlers, filters, interceptors and
 * converters work on this type.
 *
 * @since 0.1.0
 */
public interface ReceivedMessage {

	/**
	 * Return the message id, unique in its queue and stable over retries.
	 * @return the message id
	 */
	long id();

	/**
	 * Return the name of the queue.
	 * @return the queue name
	 */
	String queue();

	/**
	 * Return the name of the consumer that received the message.
	 * @return the consumer name
	 */
	String consumer();

	/**
	 * Return the event type.
	 * @return the event type, {@code null} when the sender gave none
	 */
	@Nullable String type();

	/**
	 * Return the payload exactly as it is stored.
	 * @return the payload text
	 */
	@Nullable String payload();

	/**
	 * Return how often the message has been delivered, this time included.
	 * @return 1 on the first delivery
	 */
	int deliveryAttempt();

	/**
	 * Return when the message was sent, by the database's clock.
	 * @return the time of sending
	 */
	OffsetDateTime createdAt();

	/**
	 * Return the application's headers.
	 * @return the headers, empty when there are none; unmodifiable
	 */
	Map<String, String> headers();

}
