package io.pgque.listener;

/**
 * What happens when a handler runs for longer than it should.
 *
 * @since 0.1.0
 */
public enum StuckHandlerAction {

	/**
	 * It is reported: an event and a line in the log.
	 */
	REPORT,

	/**
	 * It is reported, and what the container holds is given up: other instances handle
	 * the batch, the message included. Not for partitioned consumers, nor in
	 * transactions.
	 */
	HAND_OVER

}
