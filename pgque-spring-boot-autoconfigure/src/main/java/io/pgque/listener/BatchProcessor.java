package io.pgque.listener;

import java.time.Duration;

import io.pgque.client.EventRow;
import io.pgque.client.Page;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.format.annotation.DurationFormat;
import org.springframework.format.datetime.standard.DurationFormatterUtils;

/**
 * Takes one batch from its first page to its settlement. A batch is settled when all of
 * its pages were handled; when the loop has to halt or the error handler says so, what
 * was done until then.
 */
final class BatchProcessor {

	private static final Log logger = LogFactory.getLog(BatchProcessor.class);

	/**
	 * So many failures are kept in memory; then the batch is settled as far as it is
	 * done, so that one of a million failures needs no more memory than its page.
	 */
	static final int MAX_FAILURES = 10_000;

	/**
	 * So often in a row one message may end its batch, as in an outage of something that
	 * all messages need; then it is retried like others that fail, and those behind it go
	 * on.
	 */
	static final int MAX_ABORTS = 20;

	private static final int SETTLE_ATTEMPTS = 5;

	private static final Duration SETTLE_PAUSE = Duration.ofMillis(500);

	private static final Duration MAX_ABORTS_DELAY = Duration.ofMinutes(1);

	private static final int STACK_TRACES_PER_BATCH = 5;

	private static final int LINES_PER_BATCH = 100;

	private final PgqueClient client;

	private final ListenerIdentity identity;

	private final PgqueContainerProperties properties;

	private final MessageDispatcher dispatcher;

	private final ContainerEvents events;

	private final CounterBoard counters;

	private final LoopControl control;

	private long abortedAt = -1;

	private int aborts;

	BatchProcessor(PgqueClient client, ListenerIdentity identity, PgqueContainerProperties properties,
			MessageDispatcher dispatcher, ContainerEvents events, CounterBoard counters, LoopControl control) {
		this.client = client;
		this.identity = identity;
		this.properties = properties;
		this.dispatcher = dispatcher;
		this.events = events;
		this.counters = counters;
		this.control = control;
	}

	/**
	 * Handle a batch.
	 * @param first its first page, not empty
	 * @return how it ended
	 * @throws RuntimeException when the database failed; nothing is settled then, or only
	 * a first part
	 */
	BatchEnd process(Page first) {
		long batchId = first.batchId();
		Run run = new Run(new BatchCompleter(this.client, this.identity, this.events, this.counters, batchId));
		Page page = first;
		while (true) {
			for (EventRow row : page.rows()) {
				BatchEnd end = handle(row, run);
				if (end != null) {
					return end;
				}
			}
			if (!page.more()) {
				break;
			}
			if (run.completer.failureCount() >= MAX_FAILURES) {
				settlePrefix(run);
				return BatchEnd.CONTINUE;
			}
			page = nextPage(batchId, page, run);
		}
		settle(run.completer::settleBatch, batchId);
		return BatchEnd.CONTINUE;
	}

	private Page nextPage(long batchId, Page page, Run run) {
		long lastId = page.rows().get(page.rows().size() - 1).id();
		this.control.begin(LoopControl.Activity.RECEIVING);
		try {
			return this.client.receivePage(batchId, lastId, this.properties.getPageSize(),
					this.properties.getPageBytes());
		}
		catch (RuntimeException ex) {
			settleAfter(ex, run);
			throw ex;
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
	}

	/**
	 * What is done needn't be done again, if it can still be settled.
	 */
	private void settleAfter(Throwable failure, Run run) {
		try {
			settlePrefix(run);
		}
		catch (RuntimeException ex) {
			failure.addSuppressed(ex);
		}
	}

	private void settlePrefix(Run run) {
		settle(run.completer::settlePrefix, run.completer.batchId());
	}

	/**
	 * Settle, again if the connection is lost meanwhile: what was handled needn't be
	 * handled twice for that. A batch id settles once at most, so trying again does no
	 * harm.
	 */
	private void settle(Runnable settling, long batchId) {
		for (int attempt = 1;; attempt++) {
			this.control.begin(LoopControl.Activity.SETTLING);
			try {
				settling.run();
				return;
			}
			catch (RuntimeException ex) {
				if (attempt == SETTLE_ATTEMPTS || this.control.isStopping()
						|| !ExceptionClassifier.isInfrastructure(ex)) {
					throw ex;
				}
				logger.warn("Settling batch " + batchId + " of " + this.identity + " failed, trying again: " + ex);
			}
			finally {
				this.control.begin(LoopControl.Activity.IDLE);
			}
			this.control.awaitPause(SETTLE_PAUSE);
		}
	}

	/**
	 * Handle one message.
	 * @return {@code null} to go on with the next
	 */
	private @Nullable BatchEnd handle(EventRow row, Run run) {
		if (!this.control.beginHandling()) {
			settlePrefix(run);
			return BatchEnd.CONTINUE;
		}
		PgqueMessage message = PgqueMessage.from(this.identity.queue(), this.identity.consumer(), row,
				this.properties.getHeaderColumn());
		Outcome outcome;
		try {
			outcome = this.dispatcher.dispatch(message, this.control::isHandlerInterrupted);
		}
		catch (VirtualMachineError ex) {
			// What was done before it needn't be done again with each attempt.
			settleAfter(ex, run);
			throw ex;
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
		if (outcome instanceof Outcome.Handled) {
			run.completer.handled(message);
		}
		else if (outcome instanceof Outcome.Skipped) {
			run.completer.skipped(message);
		}
		else if (outcome instanceof Outcome.Interrupted) {
			logger.warn("The handler of message " + message.id() + " of " + this.identity
					+ " did not end within the shutdown timeout of " + this.properties.getShutdownTimeout()
					+ " and was interrupted. The message comes again; this doesn't count as a failure");
			settlePrefix(run);
			return BatchEnd.CONTINUE;
		}
		else if (outcome instanceof Outcome.Failed failed) {
			return failed(message, failed, run);
		}
		else if (outcome instanceof Outcome.Refused refused) {
			settlePrefix(run);
			return new BatchEnd(Duration.ZERO, refused.failure());
		}
		return null;
	}

	private @Nullable BatchEnd failed(PgqueMessage message, Outcome.Failed failed, Run run) {
		FailureAction action = failed.action();
		if (action instanceof FailureAction.AbortBatch && isStuckAt(message)) {
			// So many times at one message: it is not the times that are bad.
			action = FailureAction.retry(MAX_ABORTS_DELAY);
		}
		if (action instanceof FailureAction.AbortBatch abort) {
			logAbort(message, failed.failure(), abort.pause());
			settlePrefix(run);
			this.counters.batchesAborted.increment();
			this.events.batchAborted(message.batchId(), message.id(), abort.pause(), failed.failure());
			return new BatchEnd(abort.pause(), null);
		}
		if (action instanceof FailureAction.Retry retry) {
			log(message, failed.failure(), "retry in " + text(retry.delay()), run);
			run.completer.retry(message, retry.delay(), FailureReason.of(failed.failure()));
		}
		else if (action instanceof FailureAction.DeadLetter) {
			log(message, failed.failure(), "it becomes a dead letter", run);
			run.completer.deadLetter(message, FailureReason.of(failed.failure()));
		}
		else {
			log(message, failed.failure(), "skipped", run);
			run.completer.skipped(message);
		}
		return null;
	}

	private static String text(Duration duration) {
		return DurationFormatterUtils.print(duration, DurationFormat.Style.COMPOSITE);
	}

	private boolean isStuckAt(PgqueMessage message) {
		this.aborts = (message.id() == this.abortedAt) ? this.aborts + 1 : 1;
		return this.aborts > MAX_ABORTS;
	}

	/**
	 * An outage ends many batches at the same message: one stack trace, then lines.
	 */
	private void logAbort(PgqueMessage message, Exception failure, Duration pause) {
		String text = "Batch " + message.batchId() + " of " + this.identity + " is left alone for " + text(pause)
				+ " at message " + message.id();
		if (message.id() == this.abortedAt) {
			logger.warn(text + ": " + FailureReason.of(failure));
		}
		else {
			logger.warn(text, failure);
		}
		this.abortedAt = message.id();
	}

	/**
	 * Tell about a failure, the first time with its stack trace, unless there are many.
	 */
	private void log(PgqueMessage message, Exception failure, String consequence, Run run) {
		String text = "Message " + message.id() + " (type '" + message.type() + "', attempt "
				+ message.deliveryAttempt() + ") of " + this.identity + " failed, " + consequence;
		run.failures++;
		if (run.failures > LINES_PER_BATCH) {
			logger.debug(text, failure);
		}
		else if (message.deliveryAttempt() == 1 && run.stackTraces < STACK_TRACES_PER_BATCH
				&& !(failure instanceof UnknownEventTypeException)) {
			run.stackTraces++;
			logger.warn(text, failure);
		}
		else {
			logger.warn(text + ": " + FailureReason.of(failure));
		}
		if (run.failures == LINES_PER_BATCH) {
			logger.warn("More than " + LINES_PER_BATCH + " messages of batch " + message.batchId() + " of "
					+ this.identity + " failed; the others are told at level DEBUG");
		}
	}

	/**
	 * How a batch ended.
	 *
	 * @param pause how long to leave the rest alone
	 * @param refusal why the container has to stop, {@code null} when it hasn't
	 */
	record BatchEnd(Duration pause, @Nullable UnknownEventTypeException refusal) {

		static final BatchEnd CONTINUE = new BatchEnd(Duration.ZERO, null);

	}

	private static final class Run {

		private final BatchCompleter completer;

		private int failures;

		private int stackTraces;

		private Run(BatchCompleter completer) {
			this.completer = completer;
		}

	}

}
