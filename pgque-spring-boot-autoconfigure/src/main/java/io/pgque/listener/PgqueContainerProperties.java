package io.pgque.listener;

import java.time.Duration;

import io.pgque.support.header.HeaderColumn;

import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * How a container works. Changes count for containers that are created afterwards.
 *
 * @since 0.1.0
 */
public class PgqueContainerProperties {

	private boolean subscribe = true;

	private Duration pollInterval = Duration.ofSeconds(1);

	private Duration fallbackPollInterval = Duration.ofSeconds(30);

	private ListenerMode mode = ListenerMode.EXCLUSIVE;

	private int concurrency = 1;

	private int partitions = 8;

	private boolean transactional;

	private @Nullable Duration maxHandlingTime;

	private StuckHandlerAction stuckHandlerAction = StuckHandlerAction.REPORT;

	private @Nullable Duration idleEventInterval;

	private StartPosition startFrom = StartPosition.NOW;

	private boolean virtualThreads;

	private Duration leaseDuration = Duration.ofSeconds(15);

	private Duration deadInterval = Duration.ofMinutes(1);

	private int pageSize = 1000;

	private long pageBytes = 8 * 1024 * 1024;

	private UnknownTypePolicy unknownTypePolicy = UnknownTypePolicy.NACK;

	private Duration shutdownTimeout = Duration.ofSeconds(20);

	private HeaderColumn headerColumn = HeaderColumn.EXTRA4;

	private AckMode ackMode = AckMode.BATCH;

	private BackOffSettings backOff = BackOffSettings.DEFAULT;

	private RetryRules retryRules = RetryRules.NONE;

	private HandlingObserver handlingObserver = HandlingObserver.NONE;

	private int failureBrakeThreshold = 10;

	private Duration failureBrakePause = Duration.ofSeconds(5);

	private Duration failureBrakeMaxPause = Duration.ofMinutes(1);

	private boolean holdFailedKeys;

	/**
	 * Create properties with the defaults.
	 */
	public PgqueContainerProperties() {
	}

	/**
	 * Create a copy.
	 * @param other the properties to copy
	 */
	public PgqueContainerProperties(PgqueContainerProperties other) {
		this.subscribe = other.subscribe;
		this.pollInterval = other.pollInterval;
		this.fallbackPollInterval = other.fallbackPollInterval;
		this.mode = other.mode;
		this.concurrency = other.concurrency;
		this.partitions = other.partitions;
		this.transactional = other.transactional;
		this.maxHandlingTime = other.maxHandlingTime;
		this.stuckHandlerAction = other.stuckHandlerAction;
		this.idleEventInterval = other.idleEventInterval;
		this.startFrom = other.startFrom;
		this.virtualThreads = other.virtualThreads;
		this.leaseDuration = other.leaseDuration;
		this.deadInterval = other.deadInterval;
		this.pageSize = other.pageSize;
		this.pageBytes = other.pageBytes;
		this.unknownTypePolicy = other.unknownTypePolicy;
		this.shutdownTimeout = other.shutdownTimeout;
		this.headerColumn = other.headerColumn;
		this.ackMode = other.ackMode;
		this.backOff = other.backOff;
		this.retryRules = other.retryRules;
		this.handlingObserver = other.handlingObserver;
		this.failureBrakeThreshold = other.failureBrakeThreshold;
		this.failureBrakePause = other.failureBrakePause;
		this.failureBrakeMaxPause = other.failureBrakeMaxPause;
		this.holdFailedKeys = other.holdFailedKeys;
	}

	/**
	 * Return whether the queue is made sure of and the consumer is subscribed before the
	 * container starts.
	 * @return whether to subscribe
	 */
	public boolean isSubscribe() {
		return this.subscribe;
	}

	/**
	 * Set whether the queue is made sure of and the consumer is subscribed before the
	 * container starts.
	 * @param subscribe whether to subscribe
	 */
	public void setSubscribe(boolean subscribe) {
		this.subscribe = subscribe;
	}

	/**
	 * Return the time between two looks for messages while notifications can't be relied
	 * on.
	 * @return the interval
	 */
	public Duration getPollInterval() {
		return this.pollInterval;
	}

	/**
	 * Set the time between two looks for messages while notifications can't be relied on.
	 * @param pollInterval the interval
	 */
	public void setPollInterval(Duration pollInterval) {
		this.pollInterval = positive("pollInterval", pollInterval);
	}

	/**
	 * Return the time between two looks for messages while notifications arrive.
	 * @return the interval
	 */
	public Duration getFallbackPollInterval() {
		return this.fallbackPollInterval;
	}

	/**
	 * Set the time between two looks for messages while notifications arrive.
	 * @param fallbackPollInterval the interval
	 */
	public void setFallbackPollInterval(Duration fallbackPollInterval) {
		this.fallbackPollInterval = positive("fallbackPollInterval", fallbackPollInterval);
	}

	/**
	 * Return how the instances of the application share the consumer.
	 * @return the mode
	 */
	public ListenerMode getMode() {
		return this.mode;
	}

	/**
	 * Set how the instances of the application share the consumer.
	 * @param mode the mode
	 */
	public void setMode(ListenerMode mode) {
		Assert.notNull(mode, "mode must not be null");
		this.mode = mode;
	}

	/**
	 * Return how many handlers run at the same time in this instance.
	 * @return the number
	 */
	public int getConcurrency() {
		return this.concurrency;
	}

	/**
	 * Set how many handlers run at the same time in this instance: exclusive, those of
	 * one batch, with messages of one key one after another; cooperative, each with a
	 * batch of its own; partitioned, each with a slot of its own.
	 * @param concurrency the number
	 */
	public void setConcurrency(int concurrency) {
		Assert.isTrue(concurrency > 0, () -> "concurrency must be positive: " + concurrency);
		this.concurrency = concurrency;
	}

	/**
	 * Return the number of slots of a partitioned consumer.
	 * @return the number
	 */
	public int getPartitions() {
		return this.partitions;
	}

	/**
	 * Set the number of slots of a partitioned consumer, which is the most handlers of it
	 * that can run at the same time in all instances.
	 * @param partitions the number, which all instances agree about
	 */
	public void setPartitions(int partitions) {
		Assert.isTrue(partitions > 0, () -> "partitions must be positive: " + partitions);
		this.partitions = partitions;
	}

	/**
	 * Return whether a batch is received, handled and settled in one transaction.
	 * @return whether it is
	 */
	public boolean isTransactional() {
		return this.transactional;
	}

	/**
	 * Set whether a batch is received, handled and settled in one transaction, so that
	 * what its handlers do in the same database happens exactly once. Each worker holds a
	 * connection meanwhile.
	 * @param transactional whether it is
	 */
	public void setTransactional(boolean transactional) {
		this.transactional = transactional;
	}

	/**
	 * Return after what time a handler is reported as stuck.
	 * @return the time, {@code null} for never
	 */
	public @Nullable Duration getMaxHandlingTime() {
		return this.maxHandlingTime;
	}

	/**
	 * Set after what time a handler is reported as stuck.
	 * @param maxHandlingTime the time, {@code null} for never
	 */
	public void setMaxHandlingTime(@Nullable Duration maxHandlingTime) {
		this.maxHandlingTime = (maxHandlingTime != null) ? positive("maxHandlingTime", maxHandlingTime) : null;
	}

	/**
	 * Return what happens when a handler is stuck.
	 * @return the action
	 */
	public StuckHandlerAction getStuckHandlerAction() {
		return this.stuckHandlerAction;
	}

	/**
	 * Set what happens when a handler is stuck.
	 * @param stuckHandlerAction the action
	 */
	public void setStuckHandlerAction(StuckHandlerAction stuckHandlerAction) {
		Assert.notNull(stuckHandlerAction, "stuckHandlerAction must not be null");
		this.stuckHandlerAction = stuckHandlerAction;
	}

	/**
	 * Return after what time without a call of a handler an event is published.
	 * @return the time, {@code null} for never
	 */
	public @Nullable Duration getIdleEventInterval() {
		return this.idleEventInterval;
	}

	/**
	 * Set after what time without a call of a handler an event is published, and again
	 * after each such time.
	 * @param idleEventInterval the time, {@code null} for never
	 */
	public void setIdleEventInterval(@Nullable Duration idleEventInterval) {
		this.idleEventInterval = (idleEventInterval != null) ? positive("idleEventInterval", idleEventInterval) : null;
	}

	/**
	 * Return where a consumer that did not exist starts.
	 * @return the position
	 */
	public StartPosition getStartFrom() {
		return this.startFrom;
	}

	/**
	 * Set where a consumer that did not exist starts.
	 * @param startFrom the position
	 */
	public void setStartFrom(StartPosition startFrom) {
		Assert.notNull(startFrom, "startFrom must not be null");
		this.startFrom = startFrom;
	}

	/**
	 * Return whether the container runs on virtual threads.
	 * @return whether it does
	 */
	public boolean isVirtualThreads() {
		return this.virtualThreads;
	}

	/**
	 * Set whether the container runs on virtual threads, which Java 21 or newer has.
	 * @param virtualThreads whether it does
	 */
	public void setVirtualThreads(boolean virtualThreads) {
		this.virtualThreads = virtualThreads;
	}

	/**
	 * Return after how long without a sign of life the batch of a cooperative worker is
	 * taken over.
	 * @return the time
	 */
	public Duration getDeadInterval() {
		return this.deadInterval;
	}

	/**
	 * Set after how long without a sign of life the batch of a cooperative worker is
	 * taken over.
	 * @param deadInterval the time
	 */
	public void setDeadInterval(Duration deadInterval) {
		this.deadInterval = positive("deadInterval", deadInterval);
	}

	/**
	 * Return how long an instance keeps a consumer without a heartbeat.
	 * @return the time, which is the longest that a takeover takes after a crash
	 */
	public Duration getLeaseDuration() {
		return this.leaseDuration;
	}

	/**
	 * Set how long an instance keeps a consumer without a heartbeat.
	 * @param leaseDuration the time, which is the longest that a takeover takes after a
	 * crash; of all containers of an application the shortest says how often it beats
	 */
	public void setLeaseDuration(Duration leaseDuration) {
		this.leaseDuration = positive("leaseDuration", leaseDuration);
	}

	/**
	 * Return how many messages of a batch are held in memory at a time.
	 * @return the number; never limits what is settled
	 */
	public int getPageSize() {
		return this.pageSize;
	}

	/**
	 * Set how many messages of a batch are held in memory at a time.
	 * @param pageSize the number; never limits what is settled
	 */
	public void setPageSize(int pageSize) {
		Assert.isTrue(pageSize > 0, () -> "pageSize must be positive: " + pageSize);
		this.pageSize = pageSize;
	}

	/**
	 * Return how many bytes of a batch are held in memory at a time.
	 * @return the number; never limits what is settled
	 */
	public long getPageBytes() {
		return this.pageBytes;
	}

	/**
	 * Set how many bytes of a batch are held in memory at a time.
	 * @param pageBytes the number; never limits what is settled
	 */
	public void setPageBytes(long pageBytes) {
		Assert.isTrue(pageBytes > 0, () -> "pageBytes must be positive: " + pageBytes);
		this.pageBytes = pageBytes;
	}

	/**
	 * Return what happens to a message whose type no handler takes.
	 * @return the policy
	 */
	public UnknownTypePolicy getUnknownTypePolicy() {
		return this.unknownTypePolicy;
	}

	/**
	 * Set what happens to a message whose type no handler takes.
	 * @param unknownTypePolicy the policy
	 */
	public void setUnknownTypePolicy(UnknownTypePolicy unknownTypePolicy) {
		this.unknownTypePolicy = unknownTypePolicy;
	}

	/**
	 * Return how long a stopping container waits for the handler that is running.
	 * @return the time
	 */
	public Duration getShutdownTimeout() {
		return this.shutdownTimeout;
	}

	/**
	 * Set how long a stopping container waits for the handler that is running. Beyond it
	 * the handler is interrupted.
	 * @param shutdownTimeout the time, zero to interrupt at once
	 */
	public void setShutdownTimeout(Duration shutdownTimeout) {
		Assert.isTrue(!shutdownTimeout.isNegative(), () -> "shutdownTimeout must not be negative: " + shutdownTimeout);
		this.shutdownTimeout = shutdownTimeout;
	}

	/**
	 * Return the event column that carries headers.
	 * @return the column
	 */
	public HeaderColumn getHeaderColumn() {
		return this.headerColumn;
	}

	/**
	 * Set the event column that carries headers.
	 * @param headerColumn the column
	 */
	public void setHeaderColumn(HeaderColumn headerColumn) {
		this.headerColumn = headerColumn;
	}

	/**
	 * Return who says that a message is done.
	 * @return the mode
	 */
	public AckMode getAckMode() {
		return this.ackMode;
	}

	/**
	 * Set who says that a message is done.
	 * @param ackMode the mode
	 */
	public void setAckMode(AckMode ackMode) {
		this.ackMode = ackMode;
	}

	/**
	 * Return the delays of retries, for containers without an error handler of their own.
	 * @return the settings
	 */
	public BackOffSettings getBackOff() {
		return this.backOff;
	}

	/**
	 * Set the delays of retries, for containers without an error handler of their own.
	 * @param backOff the settings
	 */
	public void setBackOff(BackOffSettings backOff) {
		this.backOff = backOff;
	}

	/**
	 * Return which exceptions are retried always or never, for containers without an
	 * error handler of their own.
	 * @return the rules
	 */
	public RetryRules getRetryRules() {
		return this.retryRules;
	}

	/**
	 * Set which exceptions are retried always or never, for containers without an error
	 * handler of their own.
	 * @param retryRules the rules
	 */
	public void setRetryRules(RetryRules retryRules) {
		this.retryRules = retryRules;
	}

	/**
	 * Return whether later messages of a key wait while an earlier one is being retried.
	 * @return whether they wait
	 * @since 0.2.0
	 */
	public boolean isHoldFailedKeys() {
		return this.holdFailedKeys;
	}

	/**
	 * Set whether later messages of a key wait while an earlier one is being retried. Not
	 * for mode {@link ListenerMode#COOPERATIVE}, which keeps no order.
	 * @param holdFailedKeys whether they wait; otherwise they are handled meanwhile
	 * @since 0.2.0
	 */
	public void setHoldFailedKeys(boolean holdFailedKeys) {
		this.holdFailedKeys = holdFailedKeys;
	}

	/**
	 * Return after how many failures in a row the container pauses.
	 * @return the number, zero for never
	 */
	public int getFailureBrakeThreshold() {
		return this.failureBrakeThreshold;
	}

	/**
	 * Set after how many failures in a row the container settles what is done and pauses,
	 * instead of using up the retries of everything that is waiting.
	 * @param failureBrakeThreshold the number, zero for never
	 */
	public void setFailureBrakeThreshold(int failureBrakeThreshold) {
		Assert.isTrue(failureBrakeThreshold >= 0,
				() -> "failureBrakeThreshold must not be negative: " + failureBrakeThreshold);
		this.failureBrakeThreshold = failureBrakeThreshold;
	}

	/**
	 * Return the first pause after failures in a row; also the pause before messages that
	 * were not acknowledged come again.
	 * @return the pause
	 */
	public Duration getFailureBrakePause() {
		return this.failureBrakePause;
	}

	/**
	 * Set the first pause after failures in a row, which doubles while they go on; also
	 * the pause before messages that were not acknowledged come again.
	 * @param failureBrakePause the pause
	 */
	public void setFailureBrakePause(Duration failureBrakePause) {
		this.failureBrakePause = positive("failureBrakePause", failureBrakePause);
	}

	/**
	 * Return the longest pause after failures in a row.
	 * @return the pause
	 */
	public Duration getFailureBrakeMaxPause() {
		return this.failureBrakeMaxPause;
	}

	/**
	 * Set the longest pause after failures in a row.
	 * @param failureBrakeMaxPause the pause
	 */
	public void setFailureBrakeMaxPause(Duration failureBrakeMaxPause) {
		this.failureBrakeMaxPause = positive("failureBrakeMaxPause", failureBrakeMaxPause);
	}

	/**
	 * Return what observes the handling of messages.
	 * @return the observer
	 */
	public HandlingObserver getHandlingObserver() {
		return this.handlingObserver;
	}

	/**
	 * Set what observes the handling of messages; nothing does by default.
	 * @param handlingObserver the observer
	 */
	public void setHandlingObserver(HandlingObserver handlingObserver) {
		Assert.notNull(handlingObserver, "handlingObserver must not be null");
		this.handlingObserver = handlingObserver;
	}

	private static Duration positive(String name, Duration duration) {
		Assert.isTrue(!duration.isNegative() && !duration.isZero(), () -> name + " must be positive: " + duration);
		return duration;
	}

}
