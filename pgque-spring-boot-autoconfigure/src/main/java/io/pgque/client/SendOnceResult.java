package io.pgque.client;

/**
 * Takes the result of a send with an idempotency key.
 *
 * @param <T> what it is made into
 * @since 0.1.0
 */
@FunctionalInterface
public interface SendOnceResult<T> {

	/**
	 * Take the result.
	 * @param eventId the event that the key stands for
	 * @param duplicate whether it was sent before, and nothing was sent now
	 * @param mismatch whether what was sent before had another type or payload
	 * @return the result
	 */
	T of(long eventId, boolean duplicate, boolean mismatch);

}
