package io.pgque.event;

/**
 * A listener container can't receive or settle, because the database can't be reached or
 * refuses. It tries again by itself, with pauses that grow to a few seconds; nothing is
 * lost. Published once, until it works again: then a
 * {@link ListenerContainerRecoveredEvent} follows, unless the container is stopped before
 * that.
 *
 * @since 0.2.0
 */
public class ListenerContainerFailingEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	private final Throwable failure;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 * @param failure the first failure
	 */
	public ListenerContainerFailingEvent(Object source, String listenerId, String queue, String consumer,
			Throwable failure) {
		super(source, listenerId, queue, consumer);
		this.failure = failure;
	}

	/**
	 * Return what went wrong first.
	 * @return the failure
	 */
	public Throwable getFailure() {
		return this.failure;
	}

	@Override
	protected String details() {
		return ", failure=" + this.failure;
	}

}
