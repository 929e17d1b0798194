package io.pgque.listener;

import org.jspecify.annotations.Nullable;

/**
 * Thrown by a handler to make the message a dead letter at once, whatever retries are
 * left.
 *
 * @since 0.1.0
 */
public class RejectMessageException extends RuntimeException {

	private static final long serialVersionUID = 1L;

	private final String reason;

	/**
	 * Reject the message.
	 * @param reason the text that is stored with the dead letter
	 */
	public RejectMessageException(String reason) {
		this(reason, null);
	}

	/**
	 * Reject the message.
	 * @param reason the text that is stored with the dead letter
	 * @param cause what went wrong
	 */
	public RejectMessageException(String reason, @Nullable Throwable cause) {
		super(reason, cause);
		this.reason = reason;
	}

	/**
	 * Return the text that is stored with the dead letter.
	 * @return the reason
	 */
	public String getReason() {
		return this.reason;
	}

}
