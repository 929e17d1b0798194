package io.pgque.listener;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import io.pgque.client.SharingClient;
import io.pgque.client.SlotClaim;
import io.pgque.event.ListenerContainerStoppedEvent.Reason;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Takes this instance's fair share of the slots of a partitioned consumer, and sees to it
 * that there is a loop for each slot that the instance holds, and for no other. Asks the
 * database a few times within a lease, and whenever an instance comes, goes or gives a
 * slot up.
 */
final class SlotCoordinator implements Runnable {

	private static final Log logger = LogFactory.getLog(SlotCoordinator.class);

	private static final int LOOKS_PER_LEASE = 3;

	private final ContainerParts parts;

	private final ContainerRun run;

	private final SharingClient client;

	private final PgqueContainerProperties properties;

	private final LoopControl control = new LoopControl(false);

	private final WorkPermits permits;

	private final InstanceHeartbeat.Pulse pulse;

	private final Map<Integer, Work> works = new ConcurrentHashMap<>();

	private final ContainerHealth.Part health;

	private final FailureBackOff backOff;

	SlotCoordinator(ContainerParts parts, ContainerRun run) {
		this.parts = parts;
		this.run = run;
		this.client = parts.client().sharing();
		this.properties = parts.properties();
		this.permits = new WorkPermits(this.properties.getConcurrency());
		this.health = parts.health().part(this);
		this.backOff = new FailureBackOff(logger, "Sharing the slots of " + parts.identity(), Duration.ofMillis(250),
				Duration.ofSeconds(5), this.health);
		this.pulse = parts.heartbeat().join(this.properties.getLeaseDuration(), this.control::wakeForTurn);
	}

	LoopControl control() {
		return this.control;
	}

	@Override
	public void run() {
		try {
			this.control.bind(Thread.currentThread());
			this.run.begun();
			while (!this.control.isStopping()) {
				pass();
			}
		}
		finally {
			this.control.begin(LoopControl.Activity.RELEASING);
			leave();
			this.control.begin(LoopControl.Activity.IDLE);
			this.control.bind(null);
			this.run.ended(null, Reason.REQUESTED);
		}
	}

	private void pass() {
		long turns = this.control.turns();
		this.health.keeps(this.pulse.failure());
		try {
			this.control.begin(LoopControl.Activity.RECEIVING);
			this.parts.subscription().run();
			if (share()) {
				this.backOff.succeeded();
			}
			this.control.begin(LoopControl.Activity.IDLE);
		}
		catch (Throwable ex) {
			// Even an Error: without this thread nobody moves the slots.
			this.control.begin(LoopControl.Activity.IDLE);
			this.parts.counters().failures.increment();
			this.control.awaitPause(this.backOff.failed(ex));
			return;
		}
		this.control.awaitTurn(turns, this.properties.getLeaseDuration().dividedBy(LOOKS_PER_LEASE));
	}

	/**
	 * @return whether the database was asked
	 */
	private boolean share() {
		if (!this.pulse.isSafe()) {
			// The heartbeat wakes this thread when it is.
			return false;
		}
		long revivals = this.pulse.revivals();
		List<SlotClaim> claims = this.client.claimSlots(this.parts.identity().queue(), this.parts.identity().consumer(),
				this.properties.getPartitions(), this.pulse.instance(), this.properties.getLeaseDuration());
		Set<Integer> claimed = new HashSet<>();
		for (SlotClaim claim : claims) {
			claimed.add(claim.slot());
			if (claim.surplus()) {
				giveUp(claim);
			}
			else {
				keep(claim, revivals);
			}
		}
		this.works.forEach((slot, work) -> {
			if (!claimed.contains(slot)) {
				work.lease().lost("another instance has taken it over");
				work.loop().control().requestStop();
			}
		});
		return true;
	}

	/**
	 * What the slot's loop has done is settled before the lease is given up.
	 */
	private void giveUp(SlotClaim claim) {
		Work work = this.works.get(claim.slot());
		if (work != null) {
			work.loop().control().requestStop();
			return;
		}
		this.client.releaseLease(this.parts.identity().queue(),
				SlotLease.name(this.parts.identity(), this.properties, claim.slot()), this.pulse.instance(),
				claim.epoch());
	}

	private void keep(SlotClaim claim, long revivals) {
		Work work = this.works.get(claim.slot());
		if (work == null) {
			start(claim, revivals);
		}
		else if (!work.loop().control().isStopping()) {
			work.lease().confirm(claim.epoch(), revivals);
		}
	}

	private void start(SlotClaim claim, long revivals) {
		LoopControl control = new LoopControl(false);
		SlotLease lease = new SlotLease(this.client, this.parts.identity(), this.properties, this.parts.events(),
				this.pulse, this.permits, control, claim.slot());
		lease.confirm(claim.epoch(), revivals);
		if (!this.run.startLoop(claim.slot(), control, lease,
				(loop) -> this.works.put(claim.slot(), new Work(lease, loop)))) {
			lease.close();
		}
	}

	/**
	 * A loop has ended; its slot, if it is still this instance's, needs another.
	 */
	void ended(ContainerLoop loop) {
		this.works.values().removeIf((work) -> work.loop() == loop);
		this.control.wakeForTurn();
	}

	private void leave() {
		try {
			leave(this.client);
		}
		catch (RuntimeException ex) {
			logger.warn("The slots of " + this.parts.identity()
					+ " could not be left to other instances; they take them over within "
					+ this.properties.getLeaseDuration() + ", or as soon as the heartbeat has left them: " + ex);
			this.pulse.releaseLater(this::leave);
		}
	}

	private void leave(SharingClient client) {
		client.leaveSlots(this.parts.identity().queue(), this.parts.identity().consumer(), this.pulse.instance());
	}

	/**
	 * All loops have ended.
	 */
	void close() {
		this.pulse.close();
	}

	/**
	 * What is going on for a slot.
	 */
	private record Work(SlotLease lease, ContainerLoop loop) {
	}

}
