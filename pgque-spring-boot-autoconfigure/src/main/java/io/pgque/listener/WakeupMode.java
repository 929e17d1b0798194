package io.pgque.listener;

/**
 * How a container learns of new events.
 *
 * @since 0.1.0
 */
public enum WakeupMode {

	/**
	 * By notifications of the database, with polling beneath.
	 */
	NOTIFY,

	/**
	 * By polling alone.
	 */
	POLL

}
