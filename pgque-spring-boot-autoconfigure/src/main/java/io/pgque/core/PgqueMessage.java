package io.pgque.core;

import java.time.OffsetDateTime;
import java.util.Map;

import io.pgque.client.EventRow;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.header.HeaderCodec;
import io.pgque.support.header.HeaderColumn;
import org.jspecify.annotations.Nullable;

/**
 * A message received from a log queue.
 *
 * @param id the message id, unique in its queue and stable over retries
 * @param batchId the id of the batch it was received in
 * @param queue the queue name
 * @param consumer the consumer that received it
 * @param type the event type
 * @param payload the payload exactly as it is stored
 * @param retryCount how often it was retried, {@code null} on the first delivery
 * @param createdAt when it was sent, by the database's clock
 * @param extra1 the first extra column, the key by convention
 * @param extra2 the second extra column
 * @param extra3 the third extra column
 * @param extra4 the fourth extra column
 * @param headers the application's headers, unmodifiable
 * @since 0.1.0
 */
public record PgqueMessage(long id, long batchId, String queue, String consumer, @Nullable String type,
		@Nullable String payload, @Nullable Integer retryCount, OffsetDateTime createdAt, @Nullable String extra1,
		@Nullable String extra2, @Nullable String extra3, @Nullable String extra4,
		Map<String, String> headers) implements ReceivedMessage {

	/**
	 * Creates a message.
	 */
	public PgqueMessage {
		headers = Map.copyOf(headers);
	}

	/**
	 * Create a message from an event of an open batch.
	 * @param queue the queue name
	 * @param consumer the consumer that received it
	 * @param row the event
	 * @param headerColumn the column that carries headers
	 * @return the message
	 */
	public static PgqueMessage from(String queue, String consumer, EventRow row, HeaderColumn headerColumn) {
		return new PgqueMessage(row.id(), row.batchId(), queue, consumer, row.type(), row.data(), row.retryCount(),
				row.createdAt(), row.extra1(), row.extra2(), row.extra3(), row.extra4(), headers(row, headerColumn));
	}

	static Map<String, String> headers(EventRow row, HeaderColumn headerColumn) {
		return switch (headerColumn) {
			case NONE -> Map.of();
			case EXTRA3 -> HeaderCodec.decode(row.extra3());
			case EXTRA4 -> HeaderCodec.decode(row.extra4());
		};
	}

	@Override
	public int deliveryAttempt() {
		return (this.retryCount != null) ? this.retryCount + 1 : 1;
	}

	/**
	 * Return the message key.
	 * @return the first extra column
	 */
	public @Nullable String key() {
		return this.extra1;
	}

}
