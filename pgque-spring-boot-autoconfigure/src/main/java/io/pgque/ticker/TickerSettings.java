package io.pgque.ticker;

import java.time.Duration;

import org.springframework.util.Assert;

/**
 * How a {@link PgqueTicker} works.
 *
 * @param mode when it ticks
 * @param interval time between ticks when nothing wakes it
 * @param onCommit whether a committed send wakes it at once
 * @param minInterval shortest time between two ticks of one queue
 * @param retryInterval time between moving due retries and delayed events to their queues
 * @param maintenanceInterval time between runs of the maintenance
 * @param rotationInterval time between second rotation steps
 * @since 0.1.0
 */
public record TickerSettings(TickerMode mode, Duration interval, boolean onCommit, Duration minInterval,
		Duration retryInterval, Duration maintenanceInterval, Duration rotationInterval) {

	/**
	 * The settings that hold when nothing is configured.
	 */
	public static final TickerSettings DEFAULTS = new TickerSettings(TickerMode.AUTO, Duration.ofMillis(100), true,
			Duration.ofMillis(5), Duration.ofSeconds(1), Duration.ofSeconds(30), Duration.ofSeconds(10));

	/**
	 * Creates settings.
	 */
	public TickerSettings {
		requirePositive("interval", interval);
		Assert.isTrue(!minInterval.isNegative(), "min-interval must not be negative");
		requirePositive("retry-interval", retryInterval);
		requirePositive("maintenance-interval", maintenanceInterval);
		requirePositive("rotation-interval", rotationInterval);
	}

	private static void requirePositive(String name, Duration value) {
		Assert.isTrue(!value.isNegative() && !value.isZero(), () -> name + " must be positive");
	}

}
