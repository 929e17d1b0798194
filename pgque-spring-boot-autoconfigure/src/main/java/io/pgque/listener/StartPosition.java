package io.pgque.listener;

import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;

import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Where a consumer starts that did not exist. One that exists goes on where it was.
 *
 * @since 0.1.0
 */
public final class StartPosition {

	/**
	 * With what is sent from now on.
	 */
	public static final StartPosition NOW = new StartPosition("now", null);

	/**
	 * With the oldest message that is still there.
	 */
	public static final StartPosition EARLIEST = new StartPosition("earliest", Instant.EPOCH);

	private final String text;

	private final @Nullable Instant time;

	private StartPosition(String text, @Nullable Instant time) {
		this.text = text;
		this.time = time;
	}

	/**
	 * Return the position from which everything sent since a time is received, as far as
	 * it is still there.
	 * @param time the time
	 * @return the position
	 */
	public static StartPosition at(Instant time) {
		Assert.notNull(time, "time must not be null");
		return new StartPosition(time.toString(), time);
	}

	/**
	 * Return the position of a text.
	 * @param text {@code now}, {@code earliest}, or a time with an offset such as
	 * {@code 2026-01-31T12:00:00Z}
	 * @return the position
	 * @throws IllegalArgumentException when the text is none of them
	 */
	public static StartPosition parse(String text) {
		if (text.equalsIgnoreCase(NOW.text)) {
			return NOW;
		}
		if (text.equalsIgnoreCase(EARLIEST.text)) {
			return EARLIEST;
		}
		try {
			return at(OffsetDateTime.parse(text).toInstant());
		}
		catch (DateTimeParseException ex) {
			throw new IllegalArgumentException(
					"A start position is 'now', 'earliest', or a time with an offset such as "
							+ "2026-01-31T12:00:00Z, not '" + text + "'",
					ex);
		}
	}

	/**
	 * Return the time since which messages are received.
	 * @return the time, {@code null} for {@link #NOW}
	 */
	public @Nullable Instant getTime() {
		return this.time;
	}

	@Override
	public String toString() {
		return this.text;
	}

}
