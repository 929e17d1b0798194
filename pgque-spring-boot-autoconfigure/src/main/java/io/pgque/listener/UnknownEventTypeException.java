package io.pgque.listener;

import org.jspecify.annotations.Nullable;

/**
 * The failure of a message whose event type no handler of its consumer takes.
 *
 * @since 0.1.0
 * @see UnknownTypePolicy
 */
public class UnknownEventTypeException extends RuntimeException {

	private static final long serialVersionUID = 1L;

	private final @Nullable String type;

	/**
	 * Create an exception.
	 * @param type the event type
	 * @param queue the queue
	 * @param consumer the consumer
	 */
	public UnknownEventTypeException(@Nullable String type, String queue, String consumer) {
		super("No handler of consumer '" + consumer + "' on queue '" + queue + "' takes event type '" + type + "'");
		this.type = type;
	}

	/**
	 * Return the event type.
	 * @return the type, or {@code null} when the message has none
	 */
	public @Nullable String getType() {
		return this.type;
	}

}
