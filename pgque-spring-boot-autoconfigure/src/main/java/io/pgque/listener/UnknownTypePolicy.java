package io.pgque.listener;

/**
 * What happens to a message whose event type no handler takes.
 *
 * @since 0.1.0
 */
public enum UnknownTypePolicy {

	/**
	 * It is retried and ends as a dead letter.
	 */
	NACK,

	/**
	 * It is passed over.
	 */
	SKIP,

	/**
	 * The container stops, and the message stays where it is.
	 */
	FAIL

}
