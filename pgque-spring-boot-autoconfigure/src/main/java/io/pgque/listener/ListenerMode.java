package io.pgque.listener;

/**
 * How the instances of an application share a consumer.
 *
 * @since 0.1.0
 */
public enum ListenerMode {

	/**
	 * One instance at a time receives, so that order is kept; the others stand by.
	 */
	EXCLUSIVE,

	/**
	 * Each batch goes to one of all workers of all instances. There is no order.
	 */
	COOPERATIVE,

	/**
	 * Keys are spread over slots, and slots over instances. Messages of one key keep
	 * their order.
	 */
	PARTITIONED

}
