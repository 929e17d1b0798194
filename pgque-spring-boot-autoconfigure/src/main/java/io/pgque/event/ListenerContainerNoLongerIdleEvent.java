package io.pgque.event;

import java.time.Duration;

/**
 * A listener container calls a handler again, after it has been idle.
 *
 * @since 0.1.0
 */
public class ListenerContainerNoLongerIdleEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	private final Duration idleTime;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 * @param idleTime how long it has been idle
	 */
	public ListenerContainerNoLongerIdleEvent(Object source, String listenerId, String queue, String consumer,
			Duration idleTime) {
		super(source, listenerId, queue, consumer);
		this.idleTime = idleTime;
	}

	/**
	 * Return how long the container has been idle.
	 * @return the time since the last handler ended
	 */
	public Duration getIdleTime() {
		return this.idleTime;
	}

	@Override
	protected String details() {
		return ", idleTime=" + this.idleTime;
	}

}
