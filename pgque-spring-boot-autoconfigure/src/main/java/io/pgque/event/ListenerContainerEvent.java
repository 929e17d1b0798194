package io.pgque.event;

/**
 * Base of the events of a listener container, which is their source.
 *
 * @since 0.1.0
 */
public abstract class ListenerContainerEvent extends PgqueApplicationEvent {

	private static final long serialVersionUID = 1L;

	private final String listenerId;

	private final String queue;

	private final String consumer;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 */
	protected ListenerContainerEvent(Object source, String listenerId, String queue, String consumer) {
		super(source);
		this.listenerId = listenerId;
		this.queue = queue;
		this.consumer = consumer;
	}

	/**
	 * Return the id of the container.
	 * @return the id
	 */
	public String getListenerId() {
		return this.listenerId;
	}

	/**
	 * Return the queue that the container reads.
	 * @return the queue
	 */
	public String getQueue() {
		return this.queue;
	}

	/**
	 * Return the consumer whose cursor the container moves.
	 * @return the consumer
	 */
	public String getConsumer() {
		return this.consumer;
	}

	@Override
	public String toString() {
		return getClass().getSimpleName() + "[listenerId=" + this.listenerId + ", queue=" + this.queue + ", consumer="
				+ this.consumer + details() + "]";
	}

	/**
	 * Return what {@link #toString()} adds for this kind of event.
	 * @return text that starts with a comma, or is empty
	 */
	protected String details() {
		return "";
	}

}
