package io.pgque.event;

/**
 * A listener container has paused: no handler is running and what it had finished is
 * settled.
 *
 * @since 0.1.0
 */
public class ListenerContainerPausedEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 */
	public ListenerContainerPausedEvent(Object source, String listenerId, String queue, String consumer) {
		super(source, listenerId, queue, consumer);
	}

}
