package io.pgque.core;

/**
 * May take over the tick after a commit of this instance: whoever waits for the committed
 * messages in this instance ticks and receives in one statement, which is sooner than the
 * ticker's tick and a statement after it.
 *
 * @since 0.2.0
 */
@FunctionalInterface
public interface TickDelegate {

	/**
	 * Offer a tick. Called on the thread that committed, so it must be quick and must not
	 * throw.
	 * @param queue the queue name
	 * @param handBack to be run, once and on any thread, if the tick is not taken after
	 * all
	 * @return whether somebody takes it
	 */
	boolean offerTick(String queue, Runnable handBack);

}
