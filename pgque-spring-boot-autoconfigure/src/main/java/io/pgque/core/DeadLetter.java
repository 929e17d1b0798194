package io.pgque.core;

import java.time.OffsetDateTime;
import java.util.Map;

import io.pgque.client.DeadLetterRow;
import io.pgque.client.EventRow;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.header.HeaderColumn;
import org.jspecify.annotations.Nullable;

/**
 * A message that a consumer could not handle.
 *
 * @param id the id of the dead letter, by which it is replayed
 * @param queue the queue name
 * @param consumer the consumer that could not handle it
 * @param reason why, as text of the last failure
 * @param deadAt when it became a dead letter, by the database's clock
 * @param messageId the id the message had
 * @param type the event type
 * @param payload the payload exactly as it was sent
 * @param deliveryAttempt how often it was delivered
 * @param createdAt when it was sent, by the database's clock
 * @param extra1 the first extra column, the key by convention
 * @param extra2 the second extra column
 * @param extra3 the third extra column
 * @param extra4 the fourth extra column
 * @param headers the application's headers, unmodifiable
 * @since 0.1.0
 */
public record DeadLetter(long id, String queue, String consumer, @Nullable String reason, OffsetDateTime deadAt,
		long messageId, @Nullable String type, @Nullable String payload, int deliveryAttempt, OffsetDateTime createdAt,
		@Nullable String extra1, @Nullable String extra2, @Nullable String extra3, @Nullable String extra4,
		Map<String, String> headers) {

	/**
	 * Creates a dead letter.
	 */
	public DeadLetter {
		headers = Map.copyOf(headers);
	}

	static DeadLetter from(DeadLetterRow row, HeaderColumn headerColumn) {
		EventRow event = row.event();
		ReceivedMessage message = PgqueMessage.from(row.queue(), row.consumer(), event, headerColumn);
		return new DeadLetter(row.id(), row.queue(), row.consumer(), row.reason(), row.deadAt(), message.id(),
				message.type(), message.payload(), message.deliveryAttempt(), message.createdAt(), event.extra1(),
				event.extra2(), event.extra3(), event.extra4(), message.headers());
	}

}
