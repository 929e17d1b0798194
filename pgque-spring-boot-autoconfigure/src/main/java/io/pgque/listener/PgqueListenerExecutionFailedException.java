package io.pgque.listener;

/**
 * A handler ended with an {@link Error}, which is the cause. The container takes it as
 * the failure of that message and lives on.
 *
 * @since 0.1.0
 */
public class PgqueListenerExecutionFailedException extends RuntimeException {

	private static final long serialVersionUID = 1L;

	private final String listenerId;

	private final String queue;

	private final String consumer;

	private final long messageId;

	/**
	 * Create an exception.
	 * @param listenerId the id of the container
	 * @param queue the queue
	 * @param consumer the consumer
	 * @param messageId the id of the message
	 * @param cause what the handler threw
	 */
	public PgqueListenerExecutionFailedException(String listenerId, String queue, String consumer, long messageId,
			Throwable cause) {
		super("Handler of listener '" + listenerId + "' failed on message " + messageId + " of queue '" + queue + "': "
				+ cause, cause);
		this.listenerId = listenerId;
		this.queue = queue;
		this.consumer = consumer;
		this.messageId = messageId;
	}

	/**
	 * Return the id of the container.
	 * @return the id
	 */
	public String getListenerId() {
		return this.listenerId;
	}

	/**
	 * Return the queue.
	 * @return the queue
	 */
	public String getQueue() {
		return this.queue;
	}

	/**
	 * Return the consumer.
	 * @return the consumer
	 */
	public String getConsumer() {
		return this.consumer;
	}

	/**
	 * Return the id of the message.
	 * @return the message id
	 */
	public long getMessageId() {
		return this.messageId;
	}

}
