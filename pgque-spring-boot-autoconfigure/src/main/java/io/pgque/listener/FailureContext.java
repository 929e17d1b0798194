package io.pgque.listener;

/**
 * Where a message failed.
 *
 * @param listenerId the id of the container
 * @param batchId the id of the batch in which the message was received
 * @param wholeBatch whether a batch listener failed with several messages and did not
 * tell which of them is to blame; the error handler is asked about each
 * @since 0.1.0
 */
public record FailureContext(String listenerId, long batchId, boolean wholeBatch) {
}
