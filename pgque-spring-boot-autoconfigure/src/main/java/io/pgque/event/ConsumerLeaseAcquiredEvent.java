package io.pgque.event;

import org.jspecify.annotations.Nullable;

/**
 * A listener container has taken the lease of its consumer: from now on it alone receives
 * the messages.
 *
 * @since 0.1.0
 */
public class ConsumerLeaseAcquiredEvent extends ConsumerLeaseEvent {

	private static final long serialVersionUID = 1L;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 * @param instance the name of this instance of the application
	 * @param epoch the number of the lease
	 * @param slot the slot of a partitioned consumer, {@code null} for the whole consumer
	 */
	public ConsumerLeaseAcquiredEvent(Object source, String listenerId, String queue, String consumer, String instance,
			long epoch, @Nullable Integer slot) {
		super(source, listenerId, queue, consumer, instance, epoch, slot);
	}

}
