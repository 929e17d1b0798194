package io.pgque.client;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * A queue with its settings and figures.
 *
 * @param name the queue name
 * @param rotationPeriod how long a slot of the log is written to at least
 * @param externalTicker whether ticks come from outside the database
 * @param tickerPaused whether ticking is paused
 * @param tickerMaxCount events after which a tick of the public ticker is due
 * @param tickerMaxLag time after which a tick of the public ticker is due
 * @param tickerIdlePeriod longest time between two ticks of an idle queue
 * @param tickerLag age of the newest tick
 * @param eventsPerSecond events per second over the latest ticks
 * @param newEvents event ids drawn since the newest tick
 * @param lastTickId the id of the newest tick
 * @since 0.1.0
 */
public record QueueRow(String name, Duration rotationPeriod, boolean externalTicker, boolean tickerPaused,
		int tickerMaxCount, Duration tickerMaxLag, Duration tickerIdlePeriod, @Nullable Duration tickerLag,
		@Nullable Double eventsPerSecond, @Nullable Long newEvents, @Nullable Long lastTickId) {
}
