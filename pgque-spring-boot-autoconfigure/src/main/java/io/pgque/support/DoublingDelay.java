package io.pgque.support;

import java.time.Duration;

import org.springframework.util.Assert;

/**
 * A delay that doubles with every failure in a row.
 *
 * @param first the delay after the first failure
 * @param longest the longest delay
 * @since 0.1.0
 */
public record DoublingDelay(Duration first, Duration longest) {

	/**
	 * Create a delay.
	 */
	public DoublingDelay {
		Assert.isTrue(!first.isNegative() && !first.isZero(), () -> "first must be positive: " + first);
		Assert.isTrue(!longest.isNegative() && !longest.isZero(), () -> "longest must be positive: " + longest);
	}

	/**
	 * Return the delay after a number of failures.
	 * @param failures how many failures there have been in a row, at least 1
	 * @return the delay, at most {@link #longest()}
	 */
	public Duration after(int failures) {
		Duration delay = this.first;
		for (int i = 1; i < failures && delay.compareTo(this.longest) < 0; i++) {
			delay = delay.plus(delay);
		}
		return (delay.compareTo(this.longest) < 0) ? delay : this.longest;
	}

}
