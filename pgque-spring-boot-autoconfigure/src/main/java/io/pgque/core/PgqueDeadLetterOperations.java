package io.pgque.core;

import java.time.Duration;
import java.util.List;

/**
 * Lists, replays and removes dead letters.
 *
 * @since 0.1.0
 */
public interface PgqueDeadLetterOperations {

	/**
	 * List the dead letters of a queue, newest first.
	 * @param queue the queue name
	 * @param limit the largest number to return
	 * @return the dead letters
	 */
	List<DeadLetter> inspect(String queue, int limit);

	/**
	 * List the dead letters of all queues, newest first.
	 * @param limit the largest number to return
	 * @return the dead letters
	 */
	List<DeadLetter> inspectAll(int limit);

	/**
	 * Count the dead letters of a queue.
	 * @param queue the queue name
	 * @return how many there are
	 */
	long count(String queue);

	/**
	 * Count the dead letters of all queues.
	 * @return how many there are
	 */
	long countAll();

	/**
	 * Deliver a dead letter again to the consumer that could not handle it, under its
	 * message id, with all its attempts to come.
	 * @param id the id of the dead letter
	 * @return the message id
	 * @throws io.pgque.DeadLetterNotFoundException when there is no such dead letter
	 */
	long replay(long id);

	/**
	 * Send a dead letter anew, to every consumer of its queue.
	 * @param id the id of the dead letter
	 * @return the new message id
	 * @throws io.pgque.DeadLetterNotFoundException when there is no such dead letter
	 */
	long replayToAll(long id);

	/**
	 * Deliver the dead letters that a queue has now again, each to the consumer that
	 * could not handle it. One that fails stays a dead letter and does not keep the
	 * others back, unless the caller's transaction binds them together.
	 * @param queue the queue name
	 * @return how many were replayed and how many failed
	 */
	ReplayAllResult replayAll(String queue);

	/**
	 * Remove dead letters for good.
	 * @param queue the queue name
	 * @param olderThan the age beyond which they are removed
	 * @return how many were removed
	 */
	int purge(String queue, Duration olderThan);

}
