package io.pgque.listener;

import java.util.List;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

/**
 * One message after the other, on the thread of the loop.
 */
final class SequentialDispatch implements DispatchStrategy {

	private final MessageDispatcher dispatcher;

	private final LoopControl control;

	SequentialDispatch(MessageDispatcher dispatcher, LoopControl control) {
		this.dispatcher = dispatcher;
		this.control = control;
	}

	@Override
	public @Nullable BatchEnd dispatch(List<PgqueMessage> messages, BatchRun run) {
		for (PgqueMessage message : messages) {
			BatchEnd end = dispatch(message, run);
			if (end != null) {
				return end;
			}
		}
		return null;
	}

	private @Nullable BatchEnd dispatch(PgqueMessage message, BatchRun run) {
		if (!this.control.beginHandling()) {
			return BatchEnd.CONTINUE;
		}
		Outcome outcome;
		try {
			outcome = this.dispatcher.dispatch(message, this.control::isHandlerInterrupted);
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
		return run.note(message, outcome);
	}

}
