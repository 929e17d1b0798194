package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when a dead letter does not exist, or not any more: it was replayed or removed.
 *
 * @since 0.1.0
 */
@SuppressWarnings("serial")
public class DeadLetterNotFoundException extends PgqueException {

	private final long id;

	/**
	 * Creates an exception.
	 * @param id the id of the dead letter
	 * @param cause the failure beneath, or {@code null}
	 */
	public DeadLetterNotFoundException(long id, @Nullable Throwable cause) {
		super("There is no dead letter " + id,
				"It may have been replayed or removed meanwhile: list those that are left", cause);
		this.id = id;
	}

	/**
	 * Return the id of the dead letter.
	 * @return the id
	 */
	public long getId() {
		return this.id;
	}

}
