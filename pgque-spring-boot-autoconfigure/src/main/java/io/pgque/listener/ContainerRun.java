package io.pgque.listener;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

import io.pgque.event.ListenerContainerStoppedEvent.Reason;
import org.jspecify.annotations.Nullable;

/**
 * The threads of a container from one start to the next stop: as many loops as its mode
 * needs.
 */
final class ContainerRun implements WakeupListener.Wakeup {

	private final ContainerParts parts;

	private final Runnable onEnd;

	private final ReentrantLock lock = new ReentrantLock();

	private final List<ContainerLoop> loops = new CopyOnWriteArrayList<>();

	private final List<Thread> threads = new CopyOnWriteArrayList<>();

	private final Set<ContainerLoop> resting = new HashSet<>();

	private final AtomicBoolean begun = new AtomicBoolean();

	private @Nullable SlotCoordinator coordinator;

	private @Nullable ContainerWatch watch;

	private WakeupListener.@Nullable Registration registration;

	private int running;

	private boolean pauseRequested;

	private volatile boolean paused;

	private volatile boolean stopping;

	private long stopRequestedAt;

	private Reason reason = Reason.REQUESTED;

	/**
	 * Create a run.
	 * @param onEnd is run when the last thread has nothing left to do
	 */
	ContainerRun(ContainerParts parts, boolean pauseRequested, Runnable onEnd) {
		this.parts = parts;
		this.pauseRequested = pauseRequested;
		this.onEnd = onEnd;
	}

	void start() {
		WakeupListener wakeups = this.parts.wakeups();
		if (wakeups != null) {
			this.registration = wakeups.register(this.parts.identity().queue(), this);
		}
		PgqueContainerProperties properties = this.parts.properties();
		this.lock.lock();
		try {
			switch (properties.getMode()) {
				case EXCLUSIVE -> addLoop("", newControl(), lease());
				case COOPERATIVE -> {
					for (int i = 1; i <= properties.getConcurrency(); i++) {
						addLoop("-" + i, newControl(), member(i));
					}
				}
				case PARTITIONED -> {
					this.coordinator = new SlotCoordinator(this.parts, this);
					add("", this.coordinator);
				}
			}
			this.threads.forEach(Thread::start);
			startWatch();
		}
		finally {
			this.lock.unlock();
		}
	}

	private void startWatch() {
		HandlingLog handlings = this.parts.handlings();
		if (handlings != null) {
			this.watch = new ContainerWatch(this.parts, handlings, () -> isPaused() || isStandby(), this::handOver);
			Thread thread = this.parts.threads().create("-watch", this.watch);
			thread.setDaemon(true);
			thread.start();
		}
	}

	private boolean handOver(Thread handler) {
		return this.parts.properties().getStuckHandlerAction() == StuckHandlerAction.HAND_OVER
				&& this.loops.stream().anyMatch((loop) -> loop.giveUpFor(handler));
	}

	private BatchSource lease() {
		return new ConsumerLease(this.parts.client().sharing(), this.parts.identity(), this.parts.properties(),
				this.parts.events(), this.parts.heartbeat(), () -> wake(null));
	}

	private BatchSource member(int number) {
		return new GroupMember(this.parts.client().sharing(), this.parts.identity(), this.parts.properties(),
				this.parts.heartbeat(), number, () -> wake(null));
	}

	private LoopControl newControl() {
		return new LoopControl(this.pauseRequested);
	}

	private void addLoop(String suffix, LoopControl control, BatchSource source) {
		ContainerLoop loop = new ContainerLoop(this.parts, this, control, source);
		this.loops.add(loop);
		add(suffix, loop);
	}

	private Thread add(String suffix, Runnable task) {
		Thread thread = this.parts.threads().create(suffix, task);
		this.running++;
		this.threads.add(thread);
		return thread;
	}

	/**
	 * Start a loop for a slot.
	 * @param slot the slot
	 * @param control of the loop
	 * @param source receives from the slot
	 * @param registrar is told the loop before that runs
	 * @return whether it was started; it isn't when the container stops
	 */
	boolean startLoop(int slot, LoopControl control, BatchSource source, Consumer<ContainerLoop> registrar) {
		this.lock.lock();
		try {
			if (this.stopping) {
				return false;
			}
			this.threads.removeIf((thread) -> thread.getState() == Thread.State.TERMINATED);
			control.requestPause(this.pauseRequested);
			ContainerLoop loop = new ContainerLoop(this.parts, this, control, source);
			registrar.accept(loop);
			this.loops.add(loop);
			add("-" + slot, loop).start();
			return true;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * The first thread has begun.
	 */
	void begun() {
		if (this.begun.compareAndSet(false, true)) {
			this.parts.events().started();
		}
	}

	/**
	 * A loop rests because of a pause, or goes on.
	 */
	void rests(ContainerLoop loop, boolean rests) {
		this.lock.lock();
		try {
			if (rests) {
				this.resting.add(loop);
			}
			else {
				this.resting.remove(loop);
			}
		}
		finally {
			this.lock.unlock();
		}
		tellPause();
	}

	private void tellPause() {
		boolean rest;
		this.lock.lock();
		try {
			rest = this.pauseRequested && this.resting.containsAll(this.loops);
			if (rest == this.paused || this.stopping) {
				return;
			}
			this.paused = rest;
		}
		finally {
			this.lock.unlock();
		}
		if (rest) {
			this.parts.events().paused();
		}
		else {
			this.parts.events().resumed();
		}
	}

	/**
	 * A thread has nothing left to do.
	 * @param loop its loop, {@code null} if it is another thread
	 * @param reason why it ended
	 */
	void ended(@Nullable ContainerLoop loop, Reason reason) {
		boolean last;
		this.lock.lock();
		try {
			if (loop != null) {
				this.loops.remove(loop);
				this.resting.remove(loop);
			}
			if (reason != Reason.REQUESTED) {
				this.reason = reason;
				requestStop();
			}
			this.running--;
			last = this.running == 0;
		}
		finally {
			this.lock.unlock();
		}
		if (this.coordinator != null && loop != null) {
			this.coordinator.ended(loop);
		}
		if (last || this.stopping) {
			this.parts.health().stopped();
		}
		else if (loop != null) {
			this.parts.health().fine(loop);
		}
		if (last) {
			finish();
		}
		else {
			tellPause();
		}
	}

	private void finish() {
		if (this.watch != null) {
			this.watch.end();
		}
		if (this.coordinator != null) {
			this.coordinator.close();
		}
		if (this.registration != null) {
			this.registration.close();
		}
		this.paused = false;
		this.onEnd.run();
		this.parts.events().stopped(this.reason);
	}

	/**
	 * Wake those whom it concerns.
	 * @param subject what was notified, {@code null} when anything may have happened
	 */
	@Override
	public void wake(@Nullable String subject) {
		String consumer = this.parts.identity().consumer();
		boolean released = subject == null || subject.equals(WakeupListener.Wakeup.LEASE + consumer)
				|| subject.startsWith(WakeupListener.Wakeup.LEASE + consumer + "#")
				|| subject.equals(WakeupListener.Wakeup.SLOTS + consumer);
		boolean work = subject == null || subject.equals(WakeupListener.Wakeup.TICK)
				|| released && this.parts.properties().getMode() == ListenerMode.COOPERATIVE;
		for (ContainerLoop loop : this.loops) {
			if (released) {
				loop.control().wakeForTurn();
			}
			if (work) {
				loop.control().wake();
			}
		}
		if (released && this.coordinator != null) {
			this.coordinator.control().wakeForTurn();
		}
	}

	@Override
	public boolean offerTick(Runnable handBack) {
		return this.loops.stream().anyMatch((loop) -> loop.control().offerTick(handBack));
	}

	/**
	 * A loop has taken a tick.
	 */
	void ticked(long tickId) {
		WakeupListener wakeups = this.parts.wakeups();
		if (wakeups != null) {
			wakeups.tickedBy(this, this.parts.identity().queue(), tickId);
		}
	}

	/**
	 * Request a stop.
	 * @return the {@link System#nanoTime()} of the first request
	 */
	long requestStop() {
		this.lock.lock();
		try {
			if (!this.stopping) {
				this.stopping = true;
				this.stopRequestedAt = System.nanoTime();
				this.loops.forEach((loop) -> loop.control().requestStop());
				if (this.coordinator != null) {
					this.coordinator.control().requestStop();
				}
			}
			return this.stopRequestedAt;
		}
		finally {
			this.lock.unlock();
		}
	}

	void requestPause(boolean pause) {
		this.lock.lock();
		try {
			this.pauseRequested = pause;
			this.loops.forEach((loop) -> loop.control().requestPause(pause));
		}
		finally {
			this.lock.unlock();
		}
		tellPause();
	}

	/**
	 * Wait for the threads to end.
	 * @param time for how long
	 * @return whether they have
	 */
	boolean awaitEnd(Duration time) throws InterruptedException {
		long deadline = System.nanoTime() + time.toNanos();
		for (Thread thread : this.threads) {
			long left = (deadline - System.nanoTime()) / 1_000_000;
			if (thread.isAlive() && left > 0) {
				thread.join(left);
			}
			if (thread.isAlive()) {
				return false;
			}
		}
		return true;
	}

	void interruptIfStuck(Duration shutdownTimeout) {
		this.loops.forEach((loop) -> loop.control().interruptIfStuck(shutdownTimeout));
		if (this.coordinator != null) {
			this.coordinator.control().interruptIfStuck(shutdownTimeout);
		}
	}

	boolean isStopping() {
		return this.stopping;
	}

	boolean isPaused() {
		return this.paused;
	}

	boolean isFailing() {
		return this.parts.health().isFailing();
	}

	/**
	 * Return whether none of the loops can receive because others do.
	 */
	boolean isStandby() {
		return this.loops.stream().noneMatch(ContainerLoop::isHeld);
	}

	/**
	 * Return whether the caller is one of the threads, which can't wait for its own end.
	 */
	boolean isCurrentThread() {
		return this.threads.contains(Thread.currentThread());
	}

}
