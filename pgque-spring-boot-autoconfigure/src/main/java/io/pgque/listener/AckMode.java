package io.pgque.listener;

/**
 * Who says that a message is done.
 *
 * @since 0.1.0
 */
public enum AckMode {

	/**
	 * The container: a message is done when its handler returns.
	 */
	BATCH,

	/**
	 * The handler, by an {@link Acknowledgment}. What it doesn't acknowledge comes again.
	 */
	MANUAL

}
