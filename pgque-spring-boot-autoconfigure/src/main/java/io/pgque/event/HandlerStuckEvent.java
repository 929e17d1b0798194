package io.pgque.event;

import java.time.Duration;

/**
 * A handler has been running for longer than {@code pgque.listener.max-handling-time}.
 * Published once for each call; the handler goes on.
 *
 * @since 0.1.0
 */
public class HandlerStuckEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	private final long messageId;

	private final Duration handlingTime;

	private final String threadName;

	private final boolean handedOver;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer whose cursor it moves
	 * @param messageId the message, or the first of those that it was given
	 * @param handlingTime how long it has been running
	 * @param threadName the thread that it runs on
	 * @param handedOver whether other instances may take over what the container held
	 */
	public HandlerStuckEvent(Object source, String listenerId, String queue, String consumer, long messageId,
			Duration handlingTime, String threadName, boolean handedOver) {
		super(source, listenerId, queue, consumer);
		this.messageId = messageId;
		this.handlingTime = handlingTime;
		this.threadName = threadName;
		this.handedOver = handedOver;
	}

	/**
	 * Return the message that is being handled.
	 * @return its id; that of the first when the handler was given several
	 */
	public long getMessageId() {
		return this.messageId;
	}

	/**
	 * Return how long the handler has been running.
	 * @return the time
	 */
	public Duration getHandlingTime() {
		return this.handlingTime;
	}

	/**
	 * Return the thread that the handler runs on.
	 * @return its name
	 */
	public String getThreadName() {
		return this.threadName;
	}

	/**
	 * Return whether the container has given up what it held, so that other instances
	 * handle the batch.
	 * @return whether it has
	 */
	public boolean isHandedOver() {
		return this.handedOver;
	}

	@Override
	protected String details() {
		return ", messageId=" + this.messageId + ", handlingTime=" + this.handlingTime + ", threadName="
				+ this.threadName + ", handedOver=" + this.handedOver;
	}

}
