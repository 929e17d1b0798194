package io.pgque.event;

import java.time.Duration;

/**
 * A listener container that could not receive or settle can do so again.
 *
 * @since 0.2.0
 * @see ListenerContainerFailingEvent
 */
public class ListenerContainerRecoveredEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	private final Duration failingTime;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 * @param failingTime how long it has failed
	 */
	public ListenerContainerRecoveredEvent(Object source, String listenerId, String queue, String consumer,
			Duration failingTime) {
		super(source, listenerId, queue, consumer);
		this.failingTime = failingTime;
	}

	/**
	 * Return how long the container has failed.
	 * @return the time since the first failure
	 */
	public Duration getFailingTime() {
		return this.failingTime;
	}

	@Override
	protected String details() {
		return ", failingTime=" + this.failingTime;
	}

}
