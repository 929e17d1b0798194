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
	 * @param problem what is wrong
	 * @param remedy what to do about it
	 * @param cause the failure beneath, or {@code null}
	 */
	public PgqueSchemaException(String problem, @Nullable String remedy, @Nullable Throwable cause) {
		super(problem, remedy, cause);
	}

}
