package io.pgque.listener;

import io.pgque.client.LeaseLostException;
import io.pgque.client.Page;
import io.pgque.client.SharingClient;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * The right to be the only one who receives the messages of one slot of a partitioned
 * consumer. {@link SlotCoordinator} takes it and confirms it.
 */
final class SlotLease implements BatchSource {

	private static final Log logger = LogFactory.getLog(SlotLease.class);

	private final SharingClient client;

	private final ListenerIdentity identity;

	private final PgqueContainerProperties properties;

	private final ContainerEvents events;

	private final InstanceHeartbeat.Pulse pulse;

	private final WorkPermits permits;

	private final LoopControl control;

	private final int slot;

	private volatile @Nullable Held held;

	SlotLease(SharingClient client, ListenerIdentity identity, PgqueContainerProperties properties,
			ContainerEvents events, InstanceHeartbeat.Pulse pulse, WorkPermits permits, LoopControl control, int slot) {
		this.client = client;
		this.identity = identity;
		this.properties = properties;
		this.events = events;
		this.pulse = pulse;
		this.permits = permits;
		this.control = control;
		this.slot = slot;
	}

	/**
	 * The slot is held by this instance.
	 * @param epoch the number of the lease
	 * @param revivals those of the pulse before the database said so
	 */
	void confirm(long epoch, long revivals) {
		Held before = this.held;
		this.held = new Held(epoch, revivals);
		if (before == null || before.epoch() != epoch) {
			logger
				.info("This instance receives slot " + this.slot + " for " + this.identity + " (epoch " + epoch + ")");
			this.events.leaseAcquired(this.pulse.instance(), epoch, this.slot);
		}
		this.control.wakeForTurn();
	}

	/**
	 * The slot is held by another instance, or by nobody.
	 */
	void lost(String reason) {
		Held before = this.held;
		this.held = null;
		if (before != null) {
			logger.warn("The lease of slot " + this.slot + " for " + this.identity + " is lost: " + reason);
			this.events.leaseLost(this.pulse.instance(), before.epoch(), this.slot);
		}
	}

	/**
	 * Return the name of a slot's consumer.
	 */
	static String name(ListenerIdentity identity, PgqueContainerProperties properties, int slot) {
		return identity.consumer() + "#" + slot + "/" + properties.getPartitions();
	}

	private String name() {
		return name(this.identity, this.properties, this.slot);
	}

	@Override
	public @Nullable Wait claim(boolean notified) {
		if (isHeld() && this.permits.acquire(this.control)) {
			return null;
		}
		// Who confirms the lease, or gives the permit, wakes the loop.
		return new Wait(this.properties.getFallbackPollInterval(), false);
	}

	@Override
	public @Nullable Page receive() {
		Held held = this.held;
		if (held == null) {
			return null;
		}
		try {
			return this.client.receiveLeased(this.identity.queue(), name(), this.pulse.instance(), held.epoch(),
					this.properties.getPageSize(), this.properties.getPageBytes());
		}
		catch (LeaseLostException ex) {
			lost(ex.getProblem());
			return null;
		}
	}

	@Override
	public boolean isHeld() {
		Held held = this.held;
		return held != null && this.pulse.isSafe() && held.revivals() == this.pulse.revivals();
	}

	@Override
	public void rest() {
		this.permits.release(this.control);
	}

	@Override
	public void close() {
		this.permits.release(this.control);
		Held held = this.held;
		this.held = null;
		if (held == null) {
			return;
		}
		try {
			release(this.client, held.epoch());
		}
		catch (RuntimeException ex) {
			logger.warn("The lease of slot " + this.slot + " for " + this.identity
					+ " could not be given up yet; the heartbeat does it: " + ex);
			this.pulse.releaseLater((client) -> release(client, held.epoch()));
		}
	}

	private void release(SharingClient client, long epoch) {
		client.releaseLease(this.identity.queue(), name(), this.pulse.instance(), epoch);
	}

	/**
	 * A lease as the database has confirmed it.
	 */
	private record Held(long epoch, long revivals) {
	}

}
