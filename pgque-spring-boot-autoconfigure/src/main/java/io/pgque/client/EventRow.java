package io.pgque.client;

import java.time.OffsetDateTime;

import org.jspecify.annotations.Nullable;

/**
 * One event of an open batch.
 *
 * @param id the event id, stable over retries
 * @param batchId the id of the batch that was open when the event was read
 * @param type the event type
 * @param data the payload text
 * @param retryCount how often the event was retried, {@code null} on its first delivery
 * @param createdAt when the event was sent, by the database's clock
 * @param extra1 the first extra column
 * @param extra2 the second extra column
 * @param extra3 the third extra column
 * @param extra4 the fourth extra column
 * @since 0.1.0
 */
public record EventRow(long id, long batchId, @Nullable String type, @Nullable String data,
		@Nullable Integer retryCount, OffsetDateTime createdAt, @Nullable String extra1, @Nullable String extra2,
		@Nullable String extra3, @Nullable String extra4) {
}
