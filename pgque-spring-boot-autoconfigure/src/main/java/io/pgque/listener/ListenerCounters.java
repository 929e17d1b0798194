package io.pgque.listener;

/**
 * What a container has done since it was created.
 *
 * @param handled how many messages a handler ended normally
 * @param skipped how many messages were passed over: their type has no handler, or the
 * error handler said so
 * @param retried how many failed messages were put back to come again
 * @param deadLettered how many messages became dead letters
 * @param batchesSettled how many batches, or first parts of batches, were settled
 * @param batchesAborted how many times the rest of a batch was left alone for a while
 * @param staleSettles how many times a batch was no longer open when it was to be
 * settled, so that nothing was changed
 * @param failures how many times receiving or settling failed
 * @param heldBack how many times a message was put back because it waits for an earlier
 * one of its key, which has failed; counted since 0.2.0
 * @since 0.1.0
 */
public record ListenerCounters(long handled, long skipped, long retried, long deadLettered, long batchesSettled,
		long batchesAborted, long staleSettles, long failures, long heldBack) {
}
