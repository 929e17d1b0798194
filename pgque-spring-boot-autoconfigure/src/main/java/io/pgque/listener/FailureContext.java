package io.pgque.listener;

/**
 * Where a message failed.
 *
 * @param listenerId the id of the container
 * @param batchId the id of the batch in which the message was received
 * @since 0.1.0
 */
public record FailureContext(String listenerId, long batchId) {
}
