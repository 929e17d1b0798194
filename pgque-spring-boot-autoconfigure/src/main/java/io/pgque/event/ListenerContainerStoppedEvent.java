package io.pgque.event;

/**
 * A listener container has stopped: its thread is gone, no handler of it is running.
 *
 * @since 0.1.0
 */
public class ListenerContainerStoppedEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	private final Reason reason;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 * @param reason why it stopped
	 */
	public ListenerContainerStoppedEvent(Object source, String listenerId, String queue, String consumer,
			Reason reason) {
		super(source, listenerId, queue, consumer);
		this.reason = reason;
	}

	/**
	 * Return why the container stopped.
	 * @return the reason
	 */
	public Reason getReason() {
		return this.reason;
	}

	@Override
	protected String details() {
		return ", reason=" + this.reason;
	}

	/**
	 * Why a container stopped.
	 */
	public enum Reason {

		/**
		 * It was told to stop.
		 */
		REQUESTED,

		/**
		 * It met a message of a type that no method takes, and
		 * {@code unknown-type-policy} is {@code fail}.
		 */
		UNKNOWN_TYPE

	}

}
