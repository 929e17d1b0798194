package io.pgque.client;

import org.jspecify.annotations.Nullable;

/**
 * What replaying all dead letters of a queue did.
 *
 * @param replayed how many are back in the queue
 * @param failed how many could not be replayed and stay dead letters
 * @param firstError the error text of the first that failed
 * @since 0.1.0
 */
public record ReplayAllRow(long replayed, long failed, @Nullable String firstError) {
}
