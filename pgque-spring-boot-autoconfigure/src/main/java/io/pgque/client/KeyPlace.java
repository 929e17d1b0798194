package io.pgque.client;

import org.jspecify.annotations.Nullable;

/**
 * Where a message stands in the order of its key, of which messages are to come again.
 *
 * @param messageId the message id
 * @param place the message's own place, {@code null} when it has none and so comes behind
 * all that have one
 * @param after the place of the one before it, {@code null} when it is the first
 * @since 0.2.0
 */
public record KeyPlace(long messageId, @Nullable Long place, @Nullable Long after) {
}
