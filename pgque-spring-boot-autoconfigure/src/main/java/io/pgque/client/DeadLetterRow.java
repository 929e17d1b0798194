package io.pgque.client;

import java.time.OffsetDateTime;

import org.jspecify.annotations.Nullable;

/**
 * A dead letter as it is stored.
 *
 * @param id the id of the dead letter
 * @param queue the queue name
 * @param consumer the consumer that could not handle the event
 * @param deadAt when it became a dead letter
 * @param reason why
 * @param event the event, with batch id 0
 * @since 0.1.0
 */
public record DeadLetterRow(long id, String queue, String consumer, OffsetDateTime deadAt, @Nullable String reason,
		EventRow event) {
}
