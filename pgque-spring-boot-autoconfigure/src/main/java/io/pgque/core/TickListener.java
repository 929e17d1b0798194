package io.pgque.core;

/**
 * Told of ticks that this instance's ticker has taken, sooner than the database's
 * notification would tell. Those that a {@link TickDelegate} takes are its own business.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface TickListener {

	/**
	 * Called on the ticker's thread when a tick is committed, so it must be quick and
	 * must not throw.
	 * @param queue the queue name
	 * @param tickId the id of the tick
	 */
	void ticked(String queue, long tickId);

}
