package io.pgque.listener;

import io.pgque.PgqueException;
import org.jspecify.annotations.Nullable;

/**
 * A listener is declared in a way that can't work. Thrown at start-up; names the method,
 * or both methods of a conflict.
 *
 * @since 0.1.0
 */
public class InvalidListenerException extends PgqueException {

	private static final long serialVersionUID = 1L;

	/**
	 * Create an exception.
	 * @param problem what is wrong, without a full stop
	 * @param remedy what to do about it, without a full stop
	 */
	public InvalidListenerException(String problem, String remedy) {
		super(problem, remedy, null);
	}

	/**
	 * Create an exception.
	 * @param problem what is wrong, without a full stop
	 * @param remedy what to do about it, without a full stop
	 * @param cause what went wrong beneath
	 */
	public InvalidListenerException(String problem, String remedy, @Nullable Throwable cause) {
		super(problem, remedy, cause);
	}

}
