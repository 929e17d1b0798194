package io.pgque.core;

import java.time.Duration;

import io.pgque.client.ConsumerRow;
import org.jspecify.annotations.Nullable;

/**
 * A consumer of a queue and where its cursor stands.
 *
 * @param queue the queue name
 * @param consumer the consumer name
 * @param lag age of the last tick that the consumer has finished
 * @param lastSeen time since the consumer last opened or finished a batch
 * @param lastTickId the last tick that the consumer has finished
 * @param currentBatchId the batch that is open
 * @param nextTickId the tick at which the open batch ends
 * @param pendingEvents an estimate of the events that are still to come
 * @since 0.1.0
 */
public record ConsumerInfo(String queue, String consumer, @Nullable Duration lag, @Nullable Duration lastSeen,
		@Nullable Long lastTickId, @Nullable Long currentBatchId, @Nullable Long nextTickId,
		@Nullable Long pendingEvents) {

	static ConsumerInfo from(ConsumerRow row) {
		return new ConsumerInfo(row.queue(), row.consumer(), row.lag(), row.lastSeen(), row.lastTickId(),
				row.currentBatchId(), row.nextTickId(), row.pendingEvents());
	}

}
