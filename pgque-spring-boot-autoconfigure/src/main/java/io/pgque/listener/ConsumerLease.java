package io.pgque.listener;

import java.time.Duration;
import java.util.Objects;
import java.util.function.LongFunction;

import io.pgque.client.LeaseAttempt;
import io.pgque.client.LeaseLostException;
import io.pgque.client.Page;
import io.pgque.client.SharingClient;
import io.pgque.client.TickedPage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * The right to be the only one who receives the messages of a consumer, among all
 * instances. It is kept by the {@link InstanceHeartbeat}, and costs no statement while it
 * is held. Used by one loop; handlers may be on other threads.
 */
final class ConsumerLease implements BatchSource {

	private static final Log logger = LogFactory.getLog(ConsumerLease.class);

	/**
	 * A lease that ends at some moment can be taken after it.
	 */
	private static final Duration MARGIN = Duration.ofMillis(10);

	private final SharingClient client;

	private final ListenerIdentity identity;

	private final PgqueContainerProperties properties;

	private final ContainerEvents events;

	private final InstanceHeartbeat.Pulse pulse;

	private volatile @Nullable Long epoch;

	/**
	 * The revivals of the pulse when the lease was last seen to be held.
	 */
	private volatile long confirmedAt;

	/**
	 * The last lease, whether it is still held or not.
	 */
	private @Nullable Long lastEpoch;

	private boolean waiting;

	/**
	 * Create a lease, which is not taken yet.
	 * @param revived is run when the instance might have been taken for dead, but can be
	 * sure of its leases again once it has asked
	 */
	ConsumerLease(SharingClient client, ListenerIdentity identity, PgqueContainerProperties properties,
			ContainerEvents events, InstanceHeartbeat heartbeat, Runnable revived) {
		this.client = client;
		this.identity = identity;
		this.properties = properties;
		this.events = events;
		this.pulse = heartbeat.join(properties.getLeaseDuration(), revived);
	}

	@Override
	public @Nullable Wait claim(boolean notified) {
		if (isHeld()) {
			return null;
		}
		if (!this.pulse.isSafe()) {
			lost("this instance has not been able to tell the database within " + this.properties.getLeaseDuration()
					+ " that it is alive");
			// The heartbeat wakes who waits for it.
			return new Wait(this.properties.getFallbackPollInterval(), false);
		}
		long revivals = this.pulse.revivals();
		LeaseAttempt attempt = this.client.acquireLease(this.identity.queue(), this.identity.consumer(),
				this.pulse.instance(), this.properties.getLeaseDuration());
		Long epoch = attempt.epoch();
		if (epoch == null) {
			lost("another instance has taken it over");
			return new Wait(standBy(attempt.left(), notified), true);
		}
		boolean taken = !Objects.equals(this.epoch, epoch);
		this.confirmedAt = revivals;
		this.epoch = epoch;
		this.lastEpoch = epoch;
		this.waiting = false;
		if (taken) {
			logger.info("This instance receives for " + this.identity + ": it has taken the lease (instance "
					+ this.pulse.instance() + ", epoch " + epoch + ")");
			this.events.leaseAcquired(this.pulse.instance(), epoch, null);
		}
		return null;
	}

	/**
	 * The lease can't be got before the holder's time is over, unless the holder gives it
	 * up, which is notified.
	 */
	private Duration standBy(@Nullable Duration left, boolean notified) {
		if (!this.waiting) {
			this.waiting = true;
			logger.info("Another instance receives for " + this.identity + ": this one stands by");
		}
		Duration pollInterval = this.properties.getPollInterval();
		if (left == null || left.isNegative() || left.isZero()) {
			return pollInterval;
		}
		Duration end = left.plus(MARGIN);
		return (notified || end.compareTo(pollInterval) < 0) ? end : pollInterval;
	}

	private void lost(String reason) {
		Long epoch = this.epoch;
		if (epoch == null) {
			return;
		}
		this.epoch = null;
		logger.warn("The lease of " + this.identity + " (instance " + this.pulse.instance() + ", epoch " + epoch
				+ ") is lost: " + reason);
		this.events.leaseLost(this.pulse.instance(), epoch, null);
	}

	@Override
	public @Nullable Page receive() {
		return asHolder((epoch) -> this.client.receiveLeased(this.identity.queue(), this.identity.consumer(),
				this.pulse.instance(), epoch, this.properties.getPageSize(), this.properties.getPageBytes()));
	}

	/**
	 * Others can't tick the queue before the tick's transaction is over, so that must not
	 * be the handlers'.
	 */
	@Override
	public boolean canTick() {
		return !this.properties.isTransactional();
	}

	@Override
	public @Nullable TickedPage tickAndReceive() {
		return asHolder((epoch) -> this.client.tickAndReceiveLeased(this.identity.queue(), this.identity.consumer(),
				this.pulse.instance(), epoch, this.properties.getPageSize(), this.properties.getPageBytes()));
	}

	@Override
	public @Nullable Page settleAndReceive(long batchId) {
		Long epoch = this.epoch;
		if (epoch == null || this.properties.isTransactional() || !isHeld()) {
			return null;
		}
		return this.client.settleAndReceiveLeased(batchId, this.pulse.instance(), epoch, this.properties.getPageSize(),
				this.properties.getPageBytes());
	}

	@Override
	public long tenure() {
		Long epoch = this.epoch;
		return (epoch != null) ? epoch : -1;
	}

	private <T> @Nullable T asHolder(LongFunction<T> statement) {
		Long epoch = this.epoch;
		if (epoch == null) {
			return null;
		}
		try {
			return statement.apply(epoch);
		}
		catch (LeaseLostException ex) {
			lost(ex.getProblem());
			return null;
		}
	}

	@Override
	public @Nullable Throwable failure() {
		return this.pulse.failure();
	}

	@Override
	public boolean isHeld() {
		return this.epoch != null && this.pulse.isSafe() && this.confirmedAt == this.pulse.revivals();
	}

	@Override
	public boolean giveUp() {
		Long epoch = this.epoch;
		if (epoch == null || this.properties.isTransactional()) {
			return false;
		}
		lost("it is given up because a handler does not return");
		return this.client.releaseLease(this.identity.queue(), this.identity.consumer(), this.pulse.instance(), epoch);
	}

	@Override
	public void close() {
		this.pulse.close();
		Long epoch = this.lastEpoch;
		this.epoch = null;
		if (epoch == null) {
			return;
		}
		try {
			release(this.client, epoch);
		}
		catch (RuntimeException ex) {
			logger
				.warn("The lease of " + this.identity + " could not be given up; another instance takes it over within "
						+ this.properties.getLeaseDuration() + ", or as soon as the heartbeat has given it up: " + ex);
			this.pulse.releaseLater((client) -> release(client, epoch));
		}
	}

	private void release(SharingClient client, long epoch) {
		client.releaseLease(this.identity.queue(), this.identity.consumer(), this.pulse.instance(), epoch);
	}

}
