package io.pgque.core;

import java.time.Duration;

import io.pgque.client.QueueRow;
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
public record QueueInfo(String name, Duration rotationPeriod, boolean externalTicker, boolean tickerPaused,
		int tickerMaxCount, Duration tickerMaxLag, Duration tickerIdlePeriod, @Nullable Duration tickerLag,
		@Nullable Double eventsPerSecond, @Nullable Long newEvents, @Nullable Long lastTickId) {

	static QueueInfo from(QueueRow row) {
		return new QueueInfo(row.name(), row.rotationPeriod(), row.externalTicker(), row.tickerPaused(),
				row.tickerMaxCount(), row.tickerMaxLag(), row.tickerIdlePeriod(), row.tickerLag(),
				row.eventsPerSecond(), row.newEvents(), row.lastTickId());
	}

}
