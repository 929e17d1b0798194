package io.pgque.core;

import java.time.Duration;
import java.util.Iterator;

import org.jspecify.annotations.Nullable;

/**
 * A batch that was received by {@link PgqueOperations#receive}. It is read page by page
 * while it is iterated over, so that its size doesn't matter.
 *
 * <pre class="code">
 * try (ReceivedBatch batch = pgque.receive("orders", "report")) {
 * 	for (PgqueMessage message : batch) {
 * 		report.add(message);
 * 	}
 * }
 * </pre>
 *
 * <p>
 * Asking for the next message tells that the one before is done. Closing settles what is
 * done, together with what was given back. A message at which the loop was left, by an
 * exception or otherwise, and those behind it come again, which counts for none of them
 * as a failed attempt.
 *
 * <p>
 * Not safe for use by several threads.
 *
 * @since 0.2.0
 */
public interface ReceivedBatch extends Iterable<PgqueMessage>, AutoCloseable {

	/**
	 * Return whether there was nothing to receive.
	 * @return {@code true} when the batch has no message
	 */
	boolean isEmpty();

	/**
	 * Return the id of the batch, by which it can be settled as a whole with
	 * {@link PgqueOperations#ack}.
	 * @return the batch id
	 * @throws java.util.NoSuchElementException when the batch is empty
	 */
	long id();

	/**
	 * Return the messages in the order of their ids. There is one iteration: another call
	 * returns the same iterator, wherever that is.
	 * @return the messages
	 */
	@Override
	Iterator<PgqueMessage> iterator();

	/**
	 * Have the message come again later, which counts as a failed attempt. After the
	 * retries that its queue allows it becomes a dead letter.
	 * @param message the message, one that was returned by the iterator
	 * @param delay the time until then, to the millisecond
	 * @param reason why, kept with a dead letter
	 */
	void retry(PgqueMessage message, Duration delay, @Nullable String reason);

	/**
	 * Make the message a dead letter, whatever retries are left.
	 * @param message the message, one that was returned by the iterator
	 * @param reason why
	 */
	void deadLetter(PgqueMessage message, String reason);

	/**
	 * Settle what is done, and let the rest come again. Another call does nothing.
	 * @throws io.pgque.BatchNotOpenException when the batch was settled or taken over
	 * meanwhile; then nothing is settled
	 */
	@Override
	void close();

}
