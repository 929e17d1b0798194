package io.pgque.listener;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

import io.pgque.core.PgqueMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.UnexpectedRollbackException;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.util.Assert;

/**
 * One transaction for a batch, where there are no savepoints, as with JPA: what a session
 * holds after a failure can't be trusted. So the failure of a handler rolls everything
 * back, and the batch runs again, with that message noted as failed instead of handed
 * over. Each failure costs one more run; effects outside the database happen again.
 */
final class RepeatedTransaction implements BatchTransaction, DispatchStrategy {

	private static final Log logger = LogFactory.getLog(RepeatedTransaction.class);

	private final TransactionTemplate template;

	private final MessageDispatcher dispatcher;

	private final SequentialDispatch sequential;

	private final LoopControl control;

	private final Map<Long, Outcome> failed = new HashMap<>();

	private @Nullable TransactionStatus status;

	RepeatedTransaction(PlatformTransactionManager transactionManager, MessageDispatcher dispatcher,
			SequentialDispatch sequential, LoopControl control) {
		this.template = new TransactionTemplate(transactionManager);
		this.dispatcher = dispatcher;
		this.sequential = sequential;
		this.control = control;
	}

	@Override
	public @Nullable Received execute(Supplier<@Nullable Received> work) {
		try {
			while (true) {
				Received received = attempt(work);
				if (received != null || this.failed.isEmpty() || this.control.isStopping()) {
					return received;
				}
			}
		}
		finally {
			this.failed.clear();
		}
	}

	private @Nullable Received attempt(Supplier<@Nullable Received> work) {
		AtomicReference<@Nullable Received> result = new AtomicReference<>();
		this.template.executeWithoutResult((status) -> {
			this.status = status;
			try {
				result.set(work.get());
			}
			catch (HandlerFailedException ex) {
				logger.debug("The batch runs again", ex);
			}
			finally {
				this.status = null;
			}
			if (result.get() == null) {
				status.setRollbackOnly();
			}
		});
		return result.get();
	}

	@Override
	public @Nullable BatchEnd dispatch(List<PgqueMessage> messages, BatchRun run) {
		for (PgqueMessage message : messages) {
			Outcome outcome = this.failed.get(message.id());
			if (outcome != null && run.isHeld(message)) {
				// Another of its key has failed since.
				outcome = Outcome.HELD;
			}
			else if (outcome == null) {
				if (!this.control.beginHandling()) {
					return BatchEnd.CONTINUE;
				}
				outcome = handle(message, run);
			}
			BatchEnd end = run.note(message, outcome);
			if (end != null) {
				return end;
			}
		}
		return null;
	}

	private Outcome handle(PgqueMessage message, BatchRun run) {
		Outcome outcome;
		try {
			outcome = this.sequential.outcome(message, run);
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
		TransactionStatus status = this.status;
		Assert.state(status != null, "Messages are handled in a transaction");
		if (outcome == Outcome.HANDLED && status.isRollbackOnly()) {
			outcome = this.dispatcher.failed(
					new UnexpectedRollbackException("The handler has marked the transaction for rollback"), message);
		}
		if (outcome instanceof Outcome.Failed || outcome instanceof Outcome.Interrupted) {
			this.failed.put(message.id(), outcome);
			throw new HandlerFailedException();
		}
		return outcome;
	}

	/**
	 * Leads from a handler that has failed out of the transaction.
	 */
	@SuppressWarnings("serial")
	private static final class HandlerFailedException extends RuntimeException {

		private HandlerFailedException() {
			super("A handler has failed; the batch runs again", null, false, false);
		}

	}

}
