package io.pgque.core;

import java.util.List;

/**
 * Administers log queues and their consumers.
 *
 * @since 0.1.0
 */
public interface PgqueAdminOperations {

	/**
	 * Create a queue, or bring an existing one to the stated settings. One that has them
	 * already is left alone, which takes no more than the right to read.
	 * @param queue the definition
	 * @return whether the queue was created
	 */
	boolean createQueue(PgqueQueue queue);

	/**
	 * Make sure that a queue exists before it is listened to: creates it where that is
	 * allowed.
	 * @param queue the queue name
	 * @throws io.pgque.QueueNotFoundException when it does not exist and may not be
	 * created
	 */
	void ensureQueue(String queue);

	/**
	 * Drop a queue with all its events.
	 * @param queue the queue name
	 * @param force whether consumers that are still subscribed lose their subscription;
	 * otherwise they keep the queue from being dropped
	 * @throws io.pgque.QueueNotFoundException when there is no such queue
	 */
	void dropQueue(String queue, boolean force);

	/**
	 * Subscribe a consumer to a queue. It receives what is sent from now on.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @return whether it was not subscribed before
	 * @throws io.pgque.QueueNotFoundException when there is no such queue
	 */
	boolean subscribe(String queue, String consumer);

	/**
	 * Remove a consumer's subscription, with its cursor and its pending retries.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @return whether it was subscribed
	 */
	boolean unsubscribe(String queue, String consumer);

	/**
	 * List the queues by name.
	 * @return the queues
	 */
	List<QueueInfo> queues();

	/**
	 * List the consumers by queue and name.
	 * @return the consumers
	 */
	List<ConsumerInfo> consumers();

	/**
	 * Return the release of the engine in the database.
	 * @return the version
	 */
	String version();

	/**
	 * Return the operations on dead letters.
	 * @return the operations
	 */
	PgqueDeadLetterOperations deadLetters();

}
