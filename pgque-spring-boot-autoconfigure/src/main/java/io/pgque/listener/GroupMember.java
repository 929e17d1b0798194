package io.pgque.listener;

import io.pgque.client.Page;
import io.pgque.client.SharingClient;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * One of the workers that share a cooperative consumer. Its batch is its own as long as
 * the {@link InstanceHeartbeat} tells that it is alive.
 */
final class GroupMember implements BatchSource {

	private static final Log logger = LogFactory.getLog(GroupMember.class);

	private final SharingClient client;

	private final ListenerIdentity identity;

	private final PgqueContainerProperties properties;

	private final String name;

	private final InstanceHeartbeat.Pulse pulse;

	/**
	 * The revivals of the pulse when the member was made sure of; 0: never.
	 */
	private volatile long joinedAt;

	/**
	 * Create a member, which does not exist in the database yet.
	 * @param number tells it from the others of this container
	 * @param revived is run when the member might have been taken for dead, but can go on
	 * once it has made sure of itself
	 */
	GroupMember(SharingClient client, ListenerIdentity identity, PgqueContainerProperties properties,
			InstanceHeartbeat heartbeat, int number, Runnable revived) {
		this.client = client;
		this.identity = identity;
		this.properties = properties;
		// A dot would divide it.
		this.name = (heartbeat.getInstance() + ":" + number).replace('.', '_');
		this.pulse = heartbeat.join(properties.getDeadInterval(), revived, (own) -> touch(own));
	}

	private void touch(SharingClient client) {
		client.touchMember(this.identity.queue(), this.identity.consumer(), this.name);
	}

	@Override
	public @Nullable Wait claim(boolean notified) {
		if (isHeld()) {
			return null;
		}
		if (!this.pulse.isSafe()) {
			// The heartbeat wakes who waits for it.
			return new Wait(this.properties.getFallbackPollInterval(), false);
		}
		long revivals = this.pulse.revivals();
		this.client.joinGroup(this.identity.queue(), this.identity.consumer(), this.name, this.pulse.instance(),
				this.properties.getDeadInterval());
		this.joinedAt = revivals;
		return null;
	}

	@Override
	public Page receive() {
		return this.client.receiveAsMember(this.identity.queue(), this.identity.consumer(), this.name,
				this.properties.getDeadInterval(), this.properties.getPageSize(), this.properties.getPageBytes());
	}

	@Override
	public @Nullable Throwable failure() {
		return this.pulse.failure();
	}

	@Override
	public boolean isHeld() {
		return this.joinedAt > 0 && this.pulse.isSafe() && this.joinedAt == this.pulse.revivals();
	}

	@Override
	public boolean giveUp() {
		if (this.joinedAt == 0) {
			return false;
		}
		this.joinedAt = 0;
		this.client.leaveGroup(this.identity.queue(), this.identity.consumer(), this.name);
		return true;
	}

	@Override
	public void close() {
		this.pulse.close();
		if (this.joinedAt == 0) {
			return;
		}
		this.joinedAt = 0;
		try {
			this.client.leaveGroup(this.identity.queue(), this.identity.consumer(), this.name);
		}
		catch (RuntimeException ex) {
			logger
				.warn("Member '" + this.name + "' of " + this.identity + " could not leave its group; others take its "
						+ "batch over within " + this.properties.getDeadInterval() + ": " + ex);
		}
	}

}
