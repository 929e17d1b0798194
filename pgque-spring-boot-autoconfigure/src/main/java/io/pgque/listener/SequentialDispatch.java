package io.pgque.listener;

import java.util.ArrayList;
import java.util.List;

import io.pgque.core.PgqueMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * One handler after the other, on the thread of the loop. Batch listeners get as many
 * messages at once as follow each other in the page, so that the order holds over all
 * handlers of a consumer.
 */
final class SequentialDispatch implements DispatchStrategy {

	private static final Log logger = LogFactory.getLog(SequentialDispatch.class);

	private final ListenerIdentity identity;

	private final MessageDispatcher dispatcher;

	private final boolean manual;

	private final LoopControl control;

	SequentialDispatch(ListenerIdentity identity, MessageDispatcher dispatcher, AckMode ackMode, LoopControl control) {
		this.identity = identity;
		this.dispatcher = dispatcher;
		this.manual = ackMode == AckMode.MANUAL;
		this.control = control;
	}

	@Override
	public @Nullable BatchEnd dispatch(List<PgqueMessage> messages, BatchRun run) {
		return this.dispatcher.hasBatchListener() ? collect(messages, run) : dispatchEach(messages, run);
	}

	private @Nullable BatchEnd dispatchEach(List<PgqueMessage> messages, BatchRun run) {
		try {
			for (PgqueMessage message : messages) {
				if (!this.control.beginHandling()) {
					return BatchEnd.CONTINUE;
				}
				BatchEnd end = run.note(message, outcome(message, run));
				if (end != null) {
					return end;
				}
			}
			return null;
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
	}

	private @Nullable BatchEnd collect(List<PgqueMessage> messages, BatchRun run) {
		Collected collected = new Collected(null, List.of());
		for (PgqueMessage message : messages) {
			if (!this.control.beginHandling()) {
				return BatchEnd.CONTINUE;
			}
			Outcome screened = screen(message);
			PgqueBatchListener listener = (screened == null) ? this.dispatcher.batchListener(message) : null;
			BatchEnd end = null;
			if (listener != collected.listener() && !(screened instanceof Outcome.Skipped)) {
				end = dispatch(collected, run);
				collected = new Collected(listener, new ArrayList<>());
			}
			if (end == null && screened != null) {
				end = run.note(message, inTurn(screened, message, run));
			}
			else if (end == null && listener == null) {
				end = dispatch(message, run);
			}
			else if (end == null) {
				collected.messages().add(message);
			}
			if (end != null) {
				return end;
			}
		}
		return dispatch(collected, run);
	}

	private @Nullable Outcome screen(PgqueMessage message) {
		try {
			return this.dispatcher.screen(message);
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
	}

	private @Nullable BatchEnd dispatch(PgqueMessage message, BatchRun run) {
		if (!this.control.beginHandling()) {
			return BatchEnd.CONTINUE;
		}
		try {
			return handle(message, run);
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
	}

	private @Nullable BatchEnd handle(PgqueMessage message, BatchRun run) {
		return run.note(message, run.isHeld(message) ? Outcome.HELD : screened(message, run));
	}

	/**
	 * What no handler wants needn't wait for others of its key. Everything else must,
	 * also if it will fail without one.
	 */
	private static Outcome inTurn(Outcome screened, PgqueMessage message, BatchRun run) {
		return (!(screened instanceof Outcome.Skipped) && run.isHeld(message)) ? Outcome.HELD : screened;
	}

	/**
	 * Let one message be handled, on whatever thread, unless it is not to be.
	 * @return what came of it, not noted yet
	 */
	Outcome outcome(PgqueMessage message, BatchRun run) {
		Outcome screened = this.dispatcher.screen(message);
		if (screened != null) {
			return inTurn(screened, message, run);
		}
		return run.isHeld(message) ? Outcome.HELD : screened(message, run);
	}

	private Outcome screened(PgqueMessage message, BatchRun run) {
		HandedBatch handed = new HandedBatch(List.of(message), run);
		Outcome outcome;
		try {
			outcome = this.dispatcher.dispatch(message, handed, this.control::isHandlerInterrupted);
		}
		finally {
			handed.close();
		}
		if (!(outcome instanceof Outcome.Handled done)) {
			return outcome;
		}
		if (done.reply() != null) {
			run.reply(message, done.reply());
		}
		return told(message, handed);
	}

	/**
	 * The outcome of a message that its handler has returned from: what it told, or what
	 * silence means.
	 */
	private Outcome told(PgqueMessage message, HandedBatch handed) {
		HandedBatch.Told told = handed.told(message);
		if (told == null) {
			return (!this.manual || handed.isAcknowledged()) ? Outcome.HANDLED : Outcome.OPEN;
		}
		Exception failure = told.failure();
		return (failure != null) ? this.dispatcher.failed(failure, message) : told.outcome();
	}

	/**
	 * Hand over several messages; after a failure that names one of them, those behind it
	 * again.
	 */
	private @Nullable BatchEnd dispatch(Collected collected, BatchRun run) {
		PgqueBatchListener listener = collected.listener();
		List<PgqueMessage> rest = run.admit(collected.messages());
		BatchEnd end = null;
		while (listener != null && end == null && !rest.isEmpty()) {
			if (!this.control.beginHandling()) {
				return BatchEnd.CONTINUE;
			}
			HandedBatch handed = new HandedBatch(rest, run);
			Exception failure;
			try {
				failure = this.dispatcher.dispatch(listener, handed);
			}
			finally {
				this.control.begin(LoopControl.Activity.IDLE);
				handed.close();
			}
			List<PgqueMessage> again = new ArrayList<>();
			end = note(handed, failure, again, run);
			rest = run.admit(again);
		}
		return end;
	}

	private @Nullable BatchEnd note(HandedBatch handed, @Nullable Exception failure, List<PgqueMessage> again,
			BatchRun run) {
		List<PgqueMessage> untold = new ArrayList<>();
		BatchEnd end = null;
		for (PgqueMessage message : handed.messages()) {
			if (failure == null || handed.told(message) != null) {
				end = first(end, run.note(message, told(message, handed)));
			}
			else {
				untold.add(message);
			}
		}
		if (failure == null || untold.isEmpty()) {
			return end;
		}
		if (this.control.isHandlerInterrupted()) {
			return first(end, run.note(untold.get(0), Outcome.INTERRUPTED));
		}
		PgqueMessage named = named(failure, handed.messages());
		return first(end,
				(named != null) ? failedAt(named, failure, untold, again, run) : failed(failure, untold, run));
	}

	private static @Nullable BatchEnd first(@Nullable BatchEnd first, @Nullable BatchEnd second) {
		return (first != null) ? first : second;
	}

	private static @Nullable PgqueMessage named(Exception failure, List<PgqueMessage> messages) {
		if (!(failure instanceof BatchListenerFailedException named)) {
			return null;
		}
		PgqueMessage message = named.getFailedMessage();
		if (message != null) {
			return messages.contains(message) ? message : null;
		}
		return (named.getIndex() >= 0 && named.getIndex() < messages.size()) ? messages.get(named.getIndex()) : null;
	}

	/**
	 * The listener has named the message that failed: everything before is done, and
	 * everything behind it has to be handed over again.
	 */
	private @Nullable BatchEnd failedAt(PgqueMessage named, Exception failure, List<PgqueMessage> untold,
			List<PgqueMessage> again, BatchRun run) {
		BatchEnd end = null;
		for (PgqueMessage message : untold) {
			if (message.id() < named.id()) {
				end = first(end, run.note(message, Outcome.HANDLED));
			}
			else if (message.id() == named.id()) {
				Exception cause = (failure.getCause() instanceof Exception exception) ? exception : failure;
				end = first(end, run.note(message, this.dispatcher.failed(cause, message)));
			}
			else {
				again.add(message);
			}
		}
		return end;
	}

	private @Nullable BatchEnd failed(Exception failure, List<PgqueMessage> untold, BatchRun run) {
		if (untold.size() == 1) {
			return run.note(untold.get(0), this.dispatcher.failed(failure, untold.get(0)));
		}
		logger.warn("A batch handler of " + this.identity + " failed with " + untold.size() + " messages, "
				+ untold.get(0).id() + " to " + untold.get(untold.size() - 1).id()
				+ ", without telling which of them is to blame");
		BatchEnd end = null;
		for (PgqueMessage message : untold) {
			end = first(end,
					run.note(message, this.dispatcher.failedTogether(failure, message, message == untold.get(0))));
			if (end != null && run.isOpen(message)) {
				return end;
			}
		}
		return end;
	}

	/**
	 * Messages that follow each other and go to the same listener.
	 *
	 * @param listener the listener, {@code null} when there is none
	 * @param messages the messages
	 */
	private record Collected(@Nullable PgqueBatchListener listener, List<PgqueMessage> messages) {
	}

}
