package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when a queue does not exist.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class QueueNotFoundException extends PgqueException {

	private final String queue;

	/**
	 * Creates an exception.
	 * @param queue the name of the queue
	 * @param problem what is wrong
	 * @param remedy what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public QueueNotFoundException(String queue, String problem, @Nullable String remedy, @Nullable Throwable cause) {
		super(problem, remedy, cause);
		this.queue = queue;
	}

	/**
	 * Return the name of the queue.
	 * @return the queue name
	 */
	public String getQueue() {
		return this.queue;
	}

}
