package io.pgque.event;

import org.jspecify.annotations.Nullable;

/**
 * A message was put among the dead letters: its handler gave it up, or it failed more
 * often than the queue allows. Published after that was committed.
 *
 * @since 0.1.0
 */
public class MessageDeadLetteredEvent extends ListenerContainerEvent {

	private static final long serialVersionUID = 1L;

	private final long messageId;

	private final @Nullable String type;

	private final int deliveryAttempt;

	private final @Nullable String reason;

	/**
	 * Create an event.
	 * @param source the container
	 * @param listenerId the id of the container
	 * @param queue the queue it reads
	 * @param consumer the consumer for which the message is dead
	 * @param messageId the id of the message
	 * @param type the event type of the message
	 * @param deliveryAttempt how often the message was delivered, the last time included
	 * @param reason the reason that is stored with the dead letter
	 */
	public MessageDeadLetteredEvent(Object source, String listenerId, String queue, String consumer, long messageId,
			@Nullable String type, int deliveryAttempt, @Nullable String reason) {
		super(source, listenerId, queue, consumer);
		this.messageId = messageId;
		this.type = type;
		this.deliveryAttempt = deliveryAttempt;
		this.reason = reason;
	}

	/**
	 * Return the id of the message.
	 * @return the message id
	 */
	public long getMessageId() {
		return this.messageId;
	}

	/**
	 * Return the event type of the message.
	 * @return the type, or {@code null} when it has none
	 */
	public @Nullable String getType() {
		return this.type;
	}

	/**
	 * Return how often the message was delivered, the last time included.
	 * @return the attempt, 1 for the first
	 */
	public int getDeliveryAttempt() {
		return this.deliveryAttempt;
	}

	/**
	 * Return the reason that is stored with the dead letter.
	 * @return the reason
	 */
	public @Nullable String getReason() {
		return this.reason;
	}

	@Override
	protected String details() {
		return ", messageId=" + this.messageId + ", type=" + this.type + ", deliveryAttempt=" + this.deliveryAttempt
				+ ", reason=" + this.reason;
	}

}
