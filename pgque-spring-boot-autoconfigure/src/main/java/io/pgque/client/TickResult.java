package io.pgque.client;

import org.jspecify.annotations.Nullable;

/**
 * What a tick did with one queue. A queue with nothing new has no result.
 *
 * @param queue the queue name
 * @param tickId the id of the tick, set when one was taken
 * @param outcome what happened
 * @param detail the error text of a failed tick, or what else there is to say
 * @since 0.1.0
 */
public record TickResult(String queue, @Nullable Long tickId, Outcome outcome, @Nullable String detail) {

	private static final String NO_CONSUMER = "no consumer";

	/**
	 * Return whether a tick was taken that nobody reads.
	 * @return whether no consumer is subscribed to the queue
	 * @since 0.2.0
	 */
	public boolean isUnread() {
		return this.outcome == Outcome.TICKED && NO_CONSUMER.equals(this.detail);
	}

	/**
	 * What happened to a queue.
	 */
	public enum Outcome {

		/**
		 * A tick was taken.
		 */
		TICKED,

		/**
		 * Another session was ticking the queue: whether its tick saw the events is not
		 * known, so ask again.
		 */
		BUSY,

		/**
		 * The queue could not be ticked; others were not affected.
		 */
		FAILED

	}

}
