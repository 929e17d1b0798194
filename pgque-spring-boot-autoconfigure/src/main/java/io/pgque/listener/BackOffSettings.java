package io.pgque.listener;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

import org.springframework.util.Assert;

/**
 * How the time until a failed message comes again grows from attempt to attempt:
 * {@code delay * multiplier ^ retryCount}, at most {@code maxDelay}, made shorter or
 * longer at random by up to {@code jitter}.
 *
 * @param delay the delay after the first failure, to the millisecond; may be zero
 * @param multiplier the factor from one attempt to the next, at least 1
 * @param maxDelay the longest delay
 * @param jitter the largest random difference, zero for none
 * @since 0.1.0
 */
public record BackOffSettings(Duration delay, double multiplier, Duration maxDelay, Duration jitter) {

	/**
	 * 5 seconds, doubled with every attempt, at most 10 minutes, no jitter.
	 */
	public static final BackOffSettings DEFAULT = new BackOffSettings(Duration.ofSeconds(5), 2.0,
			Duration.ofMinutes(10), Duration.ZERO);

	/**
	 * Create settings.
	 */
	public BackOffSettings {
		Assert.isTrue(!delay.isNegative(), () -> "delay must not be negative: " + delay);
		Assert.isTrue(multiplier >= 1 && Double.isFinite(multiplier),
				() -> "multiplier must be a number of 1 or more: " + multiplier);
		Assert.isTrue(!maxDelay.isNegative(), () -> "maxDelay must not be negative: " + maxDelay);
		Assert.isTrue(!jitter.isNegative(), () -> "jitter must not be negative: " + jitter);
	}

	/**
	 * Return the delay before the next delivery.
	 * @param retryCount how often the message came again already, 0 after its first
	 * delivery
	 * @return the delay, between zero and {@link #maxDelay()}
	 */
	public Duration delayFor(int retryCount) {
		// In floating point an overflow is an infinity, which the limit catches.
		double limit = millis(this.maxDelay);
		double base = Math.min(limit, millis(this.delay) * Math.pow(this.multiplier, Math.max(0, retryCount)));
		if (Double.isNaN(base)) { // zero times infinity
			base = 0;
		}
		double spread = millis(this.jitter);
		if (spread > 0) {
			double low = Math.max(0, base - spread);
			double high = Math.min(limit, base + spread);
			base = low + (high - low) * ThreadLocalRandom.current().nextDouble();
		}
		return (base < limit) ? Duration.ofMillis(Math.round(base)) : this.maxDelay;
	}

	private static double millis(Duration duration) {
		return duration.getSeconds() * 1000.0 + duration.getNano() / 1_000_000.0;
	}

}
