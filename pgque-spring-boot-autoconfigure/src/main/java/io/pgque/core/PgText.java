package io.pgque.core;

import java.nio.charset.StandardCharsets;

import io.pgque.InvalidMessageException;
import org.jspecify.annotations.Nullable;

/**
 * Finds what PostgreSQL's text cannot carry: NUL, and surrogates without their other
 * half, which the driver would turn into question marks.
 */
final class PgText {

	private PgText() {
	}

	/**
	 * Find the first character that cannot be carried.
	 * @param text the text
	 * @return its index, -1 when there is none
	 */
	static int firstFault(String text) {
		for (int i = 0, length = text.length(); i < length; i++) {
			char c = text.charAt(i);
			if (c == 0) {
				return i;
			}
			if (c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE) {
				if (c > Character.MAX_HIGH_SURROGATE || i + 1 == length
						|| !Character.isLowSurrogate(text.charAt(i + 1))) {
					return i;
				}
				i++;
			}
		}
		return -1;
	}

	static String describe(String text, int index) {
		return (text.charAt(index) == 0) ? "a NUL character at index " + index
				: "half a surrogate pair at index " + index;
	}

	/**
	 * Return text without what cannot be carried, where it is only to be read by people.
	 */
	static String storable(String text) {
		return new String(text.replace("\0", "").getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
	}

	/**
	 * Refuse text that is longer in UTF-8 than it may be.
	 * @param field what the text is, for the error
	 * @param text the text
	 * @param maxBytes the most bytes
	 */
	static void checkSize(String queue, String field, @Nullable String text, long maxBytes) {
		// One char is three bytes at most.
		if (text == null || text.length() * 3L <= maxBytes) {
			return;
		}
		long bytes = text.codePoints().mapToLong(PgText::bytes).sum();
		if (bytes > maxBytes) {
			throw new InvalidMessageException(
					"The " + field + " of a message for queue '" + queue + "' has " + bytes
							+ " bytes of UTF-8, more than the " + maxBytes + " that are allowed",
					"Store large data elsewhere and send a reference to it", null);
		}
	}

	private static int bytes(int codePoint) {
		if (codePoint < 0x80) {
			return 1;
		}
		if (codePoint < 0x800) {
			return 2;
		}
		return (codePoint < 0x10000) ? 3 : 4;
	}

	/**
	 * Refuse text that cannot be carried.
	 * @param field what the text is, for the error
	 * @param text the text
	 */
	static void check(String queue, String field, @Nullable String text) {
		if (text == null) {
			return;
		}
		int fault = firstFault(text);
		if (fault >= 0) {
			throw new InvalidMessageException(
					"The " + field + " of a message for queue '" + queue + "' has " + describe(text, fault)
							+ ", which PostgreSQL's text cannot store",
					"Remove it, or send binary data in a text form such as Base64", null);
		}
	}

}
