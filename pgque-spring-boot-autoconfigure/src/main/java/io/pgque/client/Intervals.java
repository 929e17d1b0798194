package io.pgque.client;

import java.math.BigDecimal;
import java.time.Duration;

/**
 * Durations as PostgreSQL reads and prints them.
 */
final class Intervals {

	// Beyond any delay that means something, and far within what an interval can hold.
	private static final Duration LONGEST = Duration.ofDays(36_500);

	private Intervals() {
	}

	/**
	 * Return the text of a duration. ISO 8601 is read alike under every
	 * {@code IntervalStyle}.
	 */
	static String text(Duration duration) {
		return ((duration.compareTo(LONGEST) > 0) ? LONGEST : duration).toString();
	}

	static Duration fromSeconds(BigDecimal seconds) {
		BigDecimal[] parts = seconds.divideAndRemainder(BigDecimal.ONE);
		return Duration.ofSeconds(parts[0].longValue(), parts[1].movePointRight(9).longValue());
	}

}
