package io.pgque.listener;

import java.util.concurrent.ExecutorService;

import io.pgque.event.ListenerContainerStoppedEvent.Reason;
import org.jspecify.annotations.Nullable;

/**
 * One loop of a container, on a thread of its own, from its start to the moment when all
 * that it held is given up.
 */
final class ContainerLoop implements Runnable, PollLoop.PauseListener {

	private final ContainerParts parts;

	private final ContainerRun run;

	private final LoopControl control;

	private final BatchSource source;

	private @Nullable ExecutorService handlers;

	private volatile @Nullable Thread thread;

	ContainerLoop(ContainerParts parts, ContainerRun run, LoopControl control, BatchSource source) {
		this.parts = parts;
		this.run = run;
		this.control = control;
		this.source = source;
	}

	LoopControl control() {
		return this.control;
	}

	boolean isHeld() {
		return this.source.isHeld();
	}

	/**
	 * Give up what is held if a handler of this loop runs on the thread.
	 * @return whether it was given up
	 */
	boolean giveUpFor(Thread handler) {
		boolean own = this.thread == handler || this.parts.properties().getMode() == ListenerMode.EXCLUSIVE;
		return own && this.source.giveUp();
	}

	@Override
	public void run() {
		Reason reason = Reason.REQUESTED;
		try {
			this.thread = Thread.currentThread();
			this.control.bind(Thread.currentThread());
			this.control.setTurn(this.source::isHeld);
			this.control.setTicks(this.source.canTick());
			this.run.begun();
			reason = loop().run(this);
		}
		finally {
			this.control.begin(LoopControl.Activity.RELEASING);
			this.source.close();
			this.control.begin(LoopControl.Activity.IDLE);
			this.control.bind(null);
			if (this.handlers != null) {
				this.handlers.shutdown();
			}
			this.run.ended(this, reason);
		}
	}

	private PollLoop loop() {
		ContainerHealth.Part health = this.parts.health().part(this);
		BatchWork work = BatchWork.of(this.parts, this.control, health, this::strategy);
		return new PollLoop(this.source, this.parts.identity(), this.parts.properties(), work.transaction(),
				work.processor(), this.parts.counters(), this.control, this.parts.subscription(),
				this.parts::isNotified, this.run::ticked, health);
	}

	/**
	 * In the other modes, other loops run at the same time.
	 */
	private DispatchStrategy strategy(SequentialDispatch sequential) {
		int concurrency = this.parts.properties().getConcurrency();
		if (this.parts.properties().getMode() != ListenerMode.EXCLUSIVE || concurrency == 1) {
			return sequential;
		}
		ExecutorService handlers = this.parts.threads().executor(concurrency);
		this.handlers = handlers;
		return new ParallelDispatch(sequential, this.control, handlers, concurrency);
	}

	@Override
	public void paused() {
		this.run.rests(this, true);
	}

	@Override
	public void resumed() {
		this.run.rests(this, false);
	}

}
