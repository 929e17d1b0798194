package io.pgque.listener;

import io.pgque.event.ListenerContainerStoppedEvent.Reason;

/**
 * One loop of a container, on a thread of its own, from its start to the moment when all
 * that it held is given up.
 */
final class ContainerLoop implements Runnable, PollLoop.PauseListener {

	private final ContainerParts parts;

	private final ContainerRun run;

	private final LoopControl control;

	private final BatchSource source;

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

	@Override
	public void run() {
		Reason reason = Reason.REQUESTED;
		try {
			this.control.bind(Thread.currentThread());
			this.control.setTurn(this.source::isHeld);
			this.run.begun();
			DispatchStrategy strategy = new SequentialDispatch(this.parts.identity(), this.parts.dispatcher(),
					this.parts.properties().getAckMode(), this.control);
			BatchProcessor processor = new BatchProcessor(this.parts.client(), this.parts.identity(),
					this.parts.properties(), strategy, this.parts.events(), this.parts.counters(), this.control);
			PollLoop loop = new PollLoop(this.source, this.parts.identity(), this.parts.properties(), processor,
					this.parts.counters(), this.control, this.parts.subscription(), this.parts::isNotified);
			reason = loop.run(this);
		}
		finally {
			this.control.begin(LoopControl.Activity.RELEASING);
			this.source.close();
			this.control.begin(LoopControl.Activity.IDLE);
			this.control.bind(null);
			this.run.ended(this, reason);
		}
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
