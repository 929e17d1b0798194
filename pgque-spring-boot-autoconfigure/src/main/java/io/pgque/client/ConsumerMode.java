package io.pgque.client;

import java.util.Locale;

import org.jspecify.annotations.Nullable;

/**
 * How a consumer is read.
 *
 * @param kind its kind
 * @param slots the number of slots of a partitioned consumer, otherwise 0
 * @since 0.1.0
 */
public record ConsumerMode(Kind kind, int slots) {

	/**
	 * The kinds of consumers.
	 */
	public enum Kind {

		/**
		 * There is no such consumer.
		 */
		NONE,

		/**
		 * One reader at a time.
		 */
		NORMAL,

		/**
		 * Several members, each with batches of its own.
		 */
		COOPERATIVE,

		/**
		 * Slots by key.
		 */
		PARTITIONED;

		static Kind of(@Nullable String name) {
			return (name != null) ? valueOf(name.toUpperCase(Locale.ROOT)) : NONE;
		}

	}

}
