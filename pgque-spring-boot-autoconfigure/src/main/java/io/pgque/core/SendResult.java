package io.pgque.core;

/**
 * What a send did.
 *
 * @param id the message id; for a delayed message the id by which it can be cancelled;
 * for a repeated idempotency key the id of the message that was sent before
 * @param duplicate whether nothing was sent, since the idempotency key was used before
 * @param mismatch whether what was sent before under that key had another type or payload
 * @since 0.1.0
 */
public record SendResult(long id, boolean duplicate, boolean mismatch) {

	static SendResult sent(long id) {
		return new SendResult(id, false, false);
	}

}
