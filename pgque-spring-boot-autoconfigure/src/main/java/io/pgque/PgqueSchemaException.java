package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when the engine's schema is missing, too old, or somebody else's.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class PgqueSchemaException extends PgqueException {

	/**
	 * Creates an exception.
	 * @param message what is wrong and what to do about it
	 */
	public PgqueSchemaException(String message) {
		super(message);
	}

	/**
	 * Creates an exception with a cause.
	 * @param message what is wrong and what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public PgqueSchemaException(String message, @Nullable Throwable cause) {
		super(message, cause);
	}

}
