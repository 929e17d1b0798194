package io.pgque.listener;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Thrown by a batch listener to say where it failed, and that everything before is done.
 * The error handler decides about that one message, looking at the cause; the messages
 * behind it are handed over anew at once.
 *
 * @since 0.1.0
 */
public class BatchListenerFailedException extends RuntimeException {

	private static final long serialVersionUID = 1L;

	private final int index;

	private final transient @Nullable PgqueMessage failedMessage;

	/**
	 * Name the message by its position.
	 * @param cause what went wrong
	 * @param index the position in the list that the listener was given, from 0
	 */
	public BatchListenerFailedException(Throwable cause, int index) {
		super("Failed at index " + index + ": " + cause, cause);
		Assert.notNull(cause, "cause must not be null");
		this.index = index;
		this.failedMessage = null;
	}

	/**
	 * Name the message.
	 * @param cause what went wrong
	 * @param message the message
	 */
	public BatchListenerFailedException(Throwable cause, PgqueMessage message) {
		super("Failed at message " + message.id() + ": " + cause, cause);
		Assert.notNull(cause, "cause must not be null");
		this.index = -1;
		this.failedMessage = message;
	}

	/**
	 * Return the position of the message.
	 * @return the position from 0, or -1 when the message itself was named
	 */
	public int getIndex() {
		return this.index;
	}

	/**
	 * Return the message.
	 * @return the message, or {@code null} when its position was named
	 */
	public @Nullable PgqueMessage getFailedMessage() {
		return this.failedMessage;
	}

}
