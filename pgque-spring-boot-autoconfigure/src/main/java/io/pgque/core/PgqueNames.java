package io.pgque.core;

import java.nio.charset.StandardCharsets;

import io.pgque.InvalidNameException;
import org.jspecify.annotations.Nullable;

/**
 * Checks names before they reach the database.
 *
 * @since 0.1.0
 */
public final class PgqueNames {

	/**
	 * The longest queue name, in bytes of UTF-8: the notification channel
	 * {@code pgque_<queue>} must fit PostgreSQL's 63.
	 */
	public static final int MAX_QUEUE_BYTES = 57;

	private PgqueNames() {
	}

	/**
	 * Check the name of a queue.
	 * @param queue the name
	 * @return the name
	 * @throws InvalidNameException when it is missing, too long, or not text that
	 * PostgreSQL can carry
	 */
	public static String requireQueue(@Nullable String queue) {
		String name = requireText("queue", queue);
		int bytes = name.getBytes(StandardCharsets.UTF_8).length;
		if (bytes > MAX_QUEUE_BYTES) {
			throw new InvalidNameException("Queue name '" + name + "' has " + bytes + " bytes of UTF-8, at most "
					+ MAX_QUEUE_BYTES + " are possible", "Choose a shorter name", null);
		}
		return name;
	}

	/**
	 * Check the name of a consumer.
	 * @param consumer the name
	 * @return the name
	 * @throws InvalidNameException when it is missing, holds a {@code #}, which is for
	 * the slots of partitioned consumers, or is not text that PostgreSQL can carry
	 */
	public static String requireConsumer(@Nullable String consumer) {
		String name = requireText("consumer", consumer);
		if (name.indexOf('#') >= 0) {
			throw new InvalidNameException(
					"Consumer name '" + name + "' holds a '#', which is reserved for slots of partitioned consumers",
					"Choose another name", null);
		}
		return name;
	}

	private static String requireText(String what, @Nullable String name) {
		if (name == null || name.isEmpty()) {
			throw new InvalidNameException("The " + what + " name is missing", "Name the " + what, null);
		}
		int fault = PgText.firstFault(name);
		if (fault >= 0) {
			throw new InvalidNameException(
					"The " + what + " name has " + PgText.describe(name, fault) + ", which PostgreSQL cannot store",
					"Choose another name", null);
		}
		return name;
	}

}
