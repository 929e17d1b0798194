package io.pgque.boot;

import java.time.Duration;
import java.util.Map;
import java.util.Set;

import io.pgque.core.PgqueQueue;
import io.pgque.listener.AckMode;
import io.pgque.listener.ListenerMode;
import io.pgque.listener.StuckHandlerAction;
import io.pgque.listener.UnknownTypePolicy;
import io.pgque.listener.WakeupMode;
import io.pgque.schema.SchemaMode;
import io.pgque.support.header.HeaderColumn;
import io.pgque.ticker.TickerMode;
import io.pgque.ticker.TickerSettings;
import org.jspecify.annotations.Nullable;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * Configuration properties for PgQue.
 *
 * @param enabled Whether to auto-configure PgQue.
 * @param schema how the engine's schema is installed
 * @param template how messages are sent
 * @param headers how message headers travel
 * @param admin how queues are administered
 * @param queueDefaults settings of queues that this application creates
 * @param ticker how committed events become visible to consumers
 * @param listener how messages are received
 * @param applicationEvents which Spring application events go to the log
 * @param inbox which handled messages are remembered
 * @param queues Queues to create, or to bring to these settings, at start-up.
 * @since 0.1.0
 */
@ConfigurationProperties("pgque")
public record PgqueProperties(@DefaultValue("true") boolean enabled, @DefaultValue Schema schema,
		@DefaultValue Template template, @DefaultValue Headers headers, @DefaultValue Admin admin,
		@DefaultValue QueueDefaults queueDefaults, @DefaultValue Ticker ticker, @DefaultValue Listener listener,
		@DefaultValue ApplicationEvents applicationEvents, @DefaultValue Inbox inbox,
		@DefaultValue Map<String, Queue> queues) {

	/**
	 * Which handled messages are remembered.
	 *
	 * @param enabled Whether there is an inbox that handlers can note messages in.
	 * @param retention How long handled messages are remembered, at least.
	 */
	public record Inbox(@DefaultValue("false") boolean enabled, @DefaultValue("7d") Duration retention) {
	}

	/**
	 * Which Spring application events go to the log.
	 *
	 * @param enabled Whether application events whose class names a queue with
	 * &#64;PgqueEvent are sent to it.
	 * @param modulith Whether events that Spring Modulith externalizes are sent to the
	 * queue that is their target.
	 */
	public record ApplicationEvents(@DefaultValue("true") boolean enabled, @DefaultValue("true") boolean modulith) {
	}

	/**
	 * Settings of one queue; what is not stated stays as it is.
	 *
	 * @param tickerMaxLag Age of the previous tick at which the public ticker function
	 * takes the next.
	 * @param tickerMaxCount Number of events at which the public ticker function takes a
	 * tick.
	 * @param tickerIdlePeriod Longest time between two ticks of an idle queue.
	 * @param rotationPeriod How long events are written to one slot of the log.
	 * @param maxRetries How often an event is retried before it becomes a dead letter.
	 */
	public record Queue(@Nullable Duration tickerMaxLag, @Nullable Integer tickerMaxCount,
			@Nullable Duration tickerIdlePeriod, @Nullable Duration rotationPeriod, @Nullable Integer maxRetries) {

		PgqueQueue toQueue(String name) {
			PgqueQueue.Builder queue = PgqueQueue.named(name);
			if (this.tickerMaxLag != null) {
				queue.tickerMaxLag(this.tickerMaxLag);
			}
			if (this.tickerMaxCount != null) {
				queue.tickerMaxCount(this.tickerMaxCount);
			}
			if (this.tickerIdlePeriod != null) {
				queue.tickerIdlePeriod(this.tickerIdlePeriod);
			}
			if (this.rotationPeriod != null) {
				queue.rotationPeriod(this.rotationPeriod);
			}
			if (this.maxRetries != null) {
				queue.maxRetries(this.maxRetries);
			}
			return queue.build();
		}

	}

	/**
	 * How the engine's schema is installed.
	 *
	 * @param mode What happens to the engine's schema at start-up.
	 * @param url JDBC URL for installing the schema. Defaults to the application's.
	 * @param username User for installing the schema, when the application's may not.
	 * @param password Password for installing the schema.
	 */
	public record Schema(@DefaultValue("migrate") SchemaMode mode, @Nullable String url, @Nullable String username,
			@Nullable String password) {
	}

	/**
	 * How messages are sent.
	 *
	 * @param requireTransaction Whether sending outside a transaction is rejected.
	 * @param observationEnabled Whether sends are observed, so that traces travel with
	 * messages.
	 */
	public record Template(@DefaultValue("false") boolean requireTransaction,
			@DefaultValue("true") boolean observationEnabled) {
	}

	/**
	 * How message headers travel.
	 *
	 * @param column Event column that carries message headers; "none" disables headers.
	 */
	public record Headers(@DefaultValue("extra4") HeaderColumn column) {
	}

	/**
	 * How queues are administered.
	 *
	 * @param autoCreate Whether missing queues that listeners name are created at
	 * start-up.
	 */
	public record Admin(@DefaultValue("true") boolean autoCreate) {
	}

	/**
	 * Settings of queues that this application creates.
	 *
	 * @param tickerMaxLag Age of the previous tick at which the public ticker function
	 * takes the next.
	 * @param tickerMaxCount Number of events at which the public ticker function takes a
	 * tick. The engine's default is 500.
	 * @param tickerIdlePeriod Longest time between two ticks of an idle queue. The
	 * engine's default is 1m.
	 * @param rotationPeriod How long events are written to one slot of the log. The
	 * engine's default is 2h.
	 * @param maxRetries How often an event is retried before it becomes a dead letter.
	 * The engine's default is 5.
	 */
	public record QueueDefaults(@DefaultValue("100ms") Duration tickerMaxLag, @Nullable Integer tickerMaxCount,
			@Nullable Duration tickerIdlePeriod, @Nullable Duration rotationPeriod, @Nullable Integer maxRetries) {

		/**
		 * Return the settings as those of a queue without a name worth mentioning.
		 */
		PgqueQueue toQueue() {
			return new Queue(this.tickerMaxLag, this.tickerMaxCount, this.tickerIdlePeriod, this.rotationPeriod,
					this.maxRetries)
				.toQueue("default");
		}

	}

	/**
	 * How committed events become visible to consumers.
	 *
	 * @param mode When this instance ticks.
	 * @param interval Time between ticks when nothing wakes the ticker.
	 * @param onCommit Whether a committed send wakes the ticker at once.
	 * @param minInterval Shortest time between two ticks of one queue.
	 * @param retryInterval Time between moving due retries and delayed events to their
	 * queue.
	 * @param maintenanceInterval Time between runs of the maintenance.
	 * @param rotationInterval Time between second rotation steps.
	 * @param statementTimeout After how long a tick, or moving what is due, fails when it
	 * is not answered. At least one second.
	 */
	public record Ticker(@DefaultValue("auto") TickerMode mode, @DefaultValue("100ms") Duration interval,
			@DefaultValue("true") boolean onCommit, @DefaultValue("5ms") Duration minInterval,
			@DefaultValue("1s") Duration retryInterval, @DefaultValue("30s") Duration maintenanceInterval,
			@DefaultValue("10s") Duration rotationInterval, @DefaultValue("30s") Duration statementTimeout) {

		TickerSettings toSettings() {
			return new TickerSettings(this.mode, this.interval, this.onCommit, this.minInterval, this.retryInterval,
					this.maintenanceInterval, this.rotationInterval);
		}

	}

	/**
	 * How messages are received.
	 *
	 * @param autoStartup Whether listener containers start with the application.
	 * @param consumer Default consumer name. Falls back to "spring.application.name".
	 * @param subscribe Whether consumers are subscribed at start-up.
	 * @param wakeup How a container learns of new events.
	 * @param pollInterval Time between polls while LISTEN is off or unhealthy.
	 * @param fallbackPollInterval Time between polls while LISTEN is healthy.
	 * @param mode How the instances of the application share a consumer.
	 * @param concurrency How many handlers of a consumer run at the same time in this
	 * instance.
	 * @param partitions Number of slots of partitioned consumers.
	 * @param transactional Whether a batch is received, handled and settled in one
	 * transaction.
	 * @param startFrom Where a consumer that did not exist starts: "now", "earliest" or a
	 * time with an offset.
	 * @param maxHandlingTime After which a handler is reported as stuck.
	 * @param stuckHandlerAction What happens when a handler is stuck.
	 * @param idleEventInterval Time without a call of a handler after which an event is
	 * published.
	 * @param deadInterval After how long without a heartbeat the batch of a cooperative
	 * worker is taken over.
	 * @param leaseDuration How long an instance keeps a consumer without a heartbeat: the
	 * longest takeover after a crash.
	 * @param pageSize How many events of a batch are held in memory at a time. Never
	 * limits what is settled.
	 * @param pageBytes How many bytes of a batch are held in memory at a time. Never
	 * limits what is settled.
	 * @param unknownTypePolicy What happens to a message whose type no method takes.
	 * @param shutdownTimeout How long a stopping container waits for its handlers. Keep
	 * below "spring.lifecycle.timeout-per-shutdown-phase".
	 * @param ackMode Who says that a message is done.
	 * @param failureBrake when a container pauses because everything fails
	 * @param holdFailedKeys Whether later messages of a key wait while an earlier one is
	 * being retried.
	 * @param retry how failed messages are redelivered
	 * @param connection the connections beside the application's pool
	 * @param observationEnabled Whether the handling of messages is observed: metrics,
	 * traces and log context.
	 * @param statementTimeout After how long a container's own statement fails when it is
	 * not answered. At least one second.
	 */
	public record Listener(@DefaultValue("true") boolean autoStartup, @Nullable String consumer,
			@DefaultValue("true") boolean subscribe, @DefaultValue("notify") WakeupMode wakeup,
			@DefaultValue("1s") Duration pollInterval, @DefaultValue("30s") Duration fallbackPollInterval,
			@DefaultValue("exclusive") ListenerMode mode, @DefaultValue("1") int concurrency,
			@DefaultValue("8") int partitions, @DefaultValue("false") boolean transactional,
			@DefaultValue("now") String startFrom, @Nullable Duration maxHandlingTime,
			@DefaultValue("report") StuckHandlerAction stuckHandlerAction, @Nullable Duration idleEventInterval,
			@DefaultValue("1m") Duration deadInterval, @DefaultValue("15s") Duration leaseDuration,
			@DefaultValue("1000") int pageSize, @DefaultValue("8MB") DataSize pageBytes,
			@DefaultValue("nack") UnknownTypePolicy unknownTypePolicy, @DefaultValue("20s") Duration shutdownTimeout,
			@DefaultValue("batch") AckMode ackMode, @DefaultValue FailureBrake failureBrake,
			@DefaultValue("false") boolean holdFailedKeys, @DefaultValue Retry retry,
			@DefaultValue Connection connection, @DefaultValue("true") boolean observationEnabled,
			@DefaultValue("60s") Duration statementTimeout) {
	}

	/**
	 * When a container pauses because everything fails.
	 *
	 * @param threshold Number of failures in a row after which a container settles what
	 * is done and pauses instead of using up retries; 0 for never.
	 * @param pause First pause after failures in a row. Doubles while they go on.
	 * @param maxPause Longest pause after failures in a row.
	 */
	public record FailureBrake(@DefaultValue("10") int threshold, @DefaultValue("5s") Duration pause,
			@DefaultValue("1m") Duration maxPause) {
	}

	/**
	 * How failed messages are redelivered.
	 *
	 * @param delay Delay before the first redelivery.
	 * @param multiplier Factor by which the delay grows with each redelivery.
	 * @param maxDelay Longest delay before a redelivery.
	 * @param jitter Largest random time by which a delay is made shorter or longer.
	 * @param includes Exceptions that are always retried, as class names.
	 * @param excludes Exceptions that are never retried, as class names.
	 */
	public record Retry(@DefaultValue("5s") Duration delay, @DefaultValue("2.0") double multiplier,
			@DefaultValue("10m") Duration maxDelay, @DefaultValue("0s") Duration jitter,
			@DefaultValue Set<Class<? extends Throwable>> includes,
			@DefaultValue Set<Class<? extends Throwable>> excludes) {
	}

	/**
	 * The connections beside the application's pool, for notifications and the heartbeat.
	 *
	 * @param url JDBC URL of a direct connection for LISTEN, when the pool goes through a
	 * transaction pooler.
	 * @param username User of the connection for LISTEN.
	 * @param password Password of the connection for LISTEN.
	 */
	public record Connection(@Nullable String url, @Nullable String username, @Nullable String password) {
	}

}
