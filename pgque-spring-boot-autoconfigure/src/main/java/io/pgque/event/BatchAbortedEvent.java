package io.pgque.event;

import java.time.Duration;

/**
 * A container has left the rest of a batch alone for a while, because a failure says that
 * something the handlers need is out of order. What was handled before is settled; the
 * rest comes again after the pause and does not count as failed.
 *
 * @since 0.1.0
 */
public class BatchAbortedEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	private final long batchId;

	private final long messageId;

	private final Duration pause;

	private final Exception failure;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 * @param batchId the id of the batch
	 * @param messageId the message at which the batch was left
	 * @param pause how long the container waits before it goes on
	 * @param failure what went wrong
	 */
	public BatchAbortedEvent(Object source, String listenerId, String queue, String consumer, long batchId,
			long messageId, Duration pause, Exception failure) {
		super(source, listenerId, queue, consumer);
		this.batchId = batchId;
		this.messageId = messageId;
		this.pause = pause;
		this.failure = failure;
	}

	/**
	 * Return the id of the batch. The rest of it comes again under another id when a part
	 * of it was settled.
	 * @return the batch id
	 */
	public long getBatchId() {
		return this.batchId;
	}

	/**
	 * Return the id of the message at which the batch was left.
	 * @return the message id
	 */
	public long getMessageId() {
		return this.messageId;
	}

	/**
	 * Return how long the container waits before it goes on.
	 * @return the pause
	 */
	public Duration getPause() {
		return this.pause;
	}

	/**
	 * Return what went wrong.
	 * @return the failure
	 */
	public Exception getFailure() {
		return this.failure;
	}

	@Override
	protected String details() {
		return ", batchId=" + this.batchId + ", messageId=" + this.messageId + ", pause=" + this.pause + ", failure="
				+ this.failure;
	}

}
