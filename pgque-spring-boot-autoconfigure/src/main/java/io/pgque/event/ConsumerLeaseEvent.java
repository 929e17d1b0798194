package io.pgque.event;

import org.jspecify.annotations.Nullable;

/**
 * Base of the events about the lease by which one instance at a time receives the
 * messages of a consumer, or of a slot of a partitioned consumer.
 *
 * @since 0.1.0
 */
public abstract class ConsumerLeaseEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	private final String instance;

	private final long epoch;

	private final @Nullable Integer slot;

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
	protected ConsumerLeaseEvent(Object source, String listenerId, String queue, String consumer, String instance,
			long epoch, @Nullable Integer slot) {
		super(source, listenerId, queue, consumer);
		this.instance = instance;
		this.epoch = epoch;
		this.slot = slot;
	}

	/**
	 * Return the name of this instance of the application.
	 * @return the name, as {@code pgque.leases()} shows it
	 */
	public String getInstance() {
		return this.instance;
	}

	/**
	 * Return the number of the lease, which is one higher each time it changes hands.
	 * @return the epoch
	 */
	public long getEpoch() {
		return this.epoch;
	}

	/**
	 * Return the slot that the lease is about.
	 * @return the slot of a partitioned consumer, {@code null} for the whole consumer
	 */
	public @Nullable Integer getSlot() {
		return this.slot;
	}

	@Override
	protected String details() {
		return ((this.slot != null) ? ", slot=" + this.slot : "") + ", instance=" + this.instance + ", epoch="
				+ this.epoch;
	}

}
