package io.pgque.client;

import org.jspecify.annotations.Nullable;

/**
 * The four extra columns of an event.
 *
 * @param extra1 the first column, the key by convention
 * @param extra2 the second column, the idempotency key by convention
 * @param extra3 the third column
 * @param extra4 the fourth column, the headers by convention
 * @since 0.1.0
 */
public record EventExtras(@Nullable String extra1, @Nullable String extra2, @Nullable String extra3,
		@Nullable String extra4) {

	/**
	 * No extra column is set.
	 */
	public static final EventExtras NONE = new EventExtras(null, null, null, null);

}
