package io.pgque.listener;

import java.time.Instant;
import java.util.Locale;

import io.pgque.PgqueException;
import io.pgque.client.ConsumerMode;
import io.pgque.client.ConsumerMode.Kind;
import io.pgque.client.PgqueClient;
import io.pgque.client.SharingClient;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Makes sure that a consumer exists and is of the kind that the listener's mode needs. A
 * consumer of another kind is changed where it stands, or refused when somebody is at
 * work on it.
 */
final class ConsumerSubscription {

	private static final Log logger = LogFactory.getLog(ConsumerSubscription.class);

	private final PgqueClient client;

	private final SharingClient sharing;

	private final ListenerIdentity identity;

	private final PgqueContainerProperties properties;

	ConsumerSubscription(PgqueClient client, ListenerIdentity identity, PgqueContainerProperties properties) {
		this.client = client;
		this.sharing = client.sharing();
		this.identity = identity;
		this.properties = properties;
	}

	/**
	 * Subscribe the consumer.
	 * @throws InvalidListenerException when the consumer is of another kind and can't be
	 * changed now
	 */
	void subscribe() {
		checkName();
		ConsumerMode present = this.sharing.consumerMode(this.identity.queue(), this.identity.consumer());
		boolean created = switch (this.properties.getMode()) {
			case EXCLUSIVE -> subscribeExclusive(present);
			case COOPERATIVE -> subscribeCooperative(present);
			case PARTITIONED -> subscribePartitioned(present);
		};
		if (created) {
			logger.info("Subscribed " + this.identity + ": it receives what is sent from "
					+ this.properties.getStartFrom() + " on");
		}
	}

	private void checkName() {
		ListenerMode mode = this.properties.getMode();
		String forbidden = (mode == ListenerMode.COOPERATIVE) ? "." : "#";
		if (mode != ListenerMode.EXCLUSIVE && this.identity.consumer().contains(forbidden)) {
			throw new InvalidListenerException(
					this.identity + " can't be " + text(mode) + ": its consumer's name contains '" + forbidden + "'",
					"Choose another consumer name");
		}
	}

	private boolean subscribeExclusive(ConsumerMode present) {
		if (present.kind() == Kind.PARTITIONED) {
			throw refusal(present, "To change it, " + whileRunning(0), null);
		}
		if (present.kind() == Kind.COOPERATIVE) {
			dissolve(present);
		}
		return subscribeNormal();
	}

	private boolean subscribeNormal() {
		Instant from = this.properties.getStartFrom().getTime();
		return (from != null) ? this.sharing.subscribe(this.identity.queue(), this.identity.consumer(), from)
				: this.client.subscribe(this.identity.queue(), this.identity.consumer());
	}

	/**
	 * The first member turns a normal consumer into a group.
	 */
	private boolean subscribeCooperative(ConsumerMode present) {
		if (present.kind() == Kind.PARTITIONED) {
			throw refusal(present, "To change it, " + whileRunning(0), null);
		}
		return present.kind() == Kind.NONE && subscribeNormal();
	}

	private boolean subscribePartitioned(ConsumerMode present) {
		int slots = this.properties.getPartitions();
		if (present.kind() == Kind.PARTITIONED && present.slots() != slots) {
			throw refusal(present, "Set partitions=" + present.slots() + ". To change it, " + whileRunning(slots),
					null);
		}
		if (present.kind() == Kind.COOPERATIVE) {
			dissolve(present);
		}
		if (present.kind() == Kind.COOPERATIVE || present.kind() == Kind.NORMAL) {
			try {
				this.sharing.divide(this.identity.queue(), this.identity.consumer(), slots);
			}
			catch (PgqueException ex) {
				throw refusal(present, "Stop the instances that receive for it, and start again; or run "
						+ changePartitions(slots) + " when they have stopped", ex);
			}
			logger.info(
					"Divided the consumer of " + this.identity + " into " + slots + " slots; it goes on where it was");
			return false;
		}
		if (present.kind() == Kind.NONE && this.properties.getStartFrom() != StartPosition.NOW) {
			boolean created = subscribeNormal();
			this.sharing.divide(this.identity.queue(), this.identity.consumer(), slots);
			return created;
		}
		return this.sharing.subscribeSlots(this.identity.queue(), this.identity.consumer(), slots) == slots;
	}

	private void dissolve(ConsumerMode present) {
		try {
			this.sharing.dissolveGroup(this.identity.queue(), this.identity.consumer());
		}
		catch (PgqueException ex) {
			throw refusal(present,
					"Stop the instances that receive for it, and start again; or run "
							+ SharingClient.dissolveStatement(this.identity.queue(), this.identity.consumer())
							+ " when they have stopped",
					ex);
		}
	}

	private InvalidListenerException refusal(ConsumerMode present, String remedy, @Nullable PgqueException cause) {
		ListenerMode mode = this.properties.getMode();
		String wanted = text(mode)
				+ ((mode == ListenerMode.PARTITIONED) ? " with " + this.properties.getPartitions() + " slots" : "");
		String found = present.kind().name().toLowerCase(Locale.ROOT)
				+ ((present.kind() == Kind.PARTITIONED) ? " with " + present.slots() + " slots" : "");
		return new InvalidListenerException("The consumer of " + this.identity + " is to be " + wanted + ", but it is "
				+ found + ((cause != null) ? ", and in use" : ""), remedy, cause);
	}

	/**
	 * Slots are exchanged by those who work on them.
	 */
	private String whileRunning(int slots) {
		return "while the instances run as before, run " + changePartitions(slots)
				+ " until it returns true; then stop them and start again";
	}

	private static String text(ListenerMode mode) {
		return mode.name().toLowerCase(Locale.ROOT);
	}

	private String changePartitions(int slots) {
		return SharingClient.divideStatement(this.identity.queue(), this.identity.consumer(), slots);
	}

}
