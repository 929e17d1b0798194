package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

import io.pgque.core.PgqueMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.format.annotation.DurationFormat;
import org.springframework.format.datetime.standard.DurationFormatterUtils;

/**
 * One batch while it is handled: notes what came of its messages and tells about those
 * that failed. Outcomes may be noted by several threads, in any order.
 */
final class BatchRun {

	private static final Log logger = LogFactory.getLog(BatchRun.class);

	private static final Duration MAX_ABORTS_DELAY = Duration.ofMinutes(1);

	private static final int STACK_TRACES_PER_BATCH = 5;

	private static final int LINES_PER_BATCH = 100;

	private final ListenerIdentity identity;

	private final PgqueContainerProperties properties;

	private final BatchCompleter completer;

	private final StubbornMessages stubborn;

	private final FailureBrake brake;

	private final ReentrantLock lock = new ReentrantLock();

	private int failures;

	private int stackTraces;

	BatchRun(ListenerIdentity identity, PgqueContainerProperties properties, BatchCompleter completer,
			StubbornMessages stubborn, FailureBrake brake) {
		this.identity = identity;
		this.properties = properties;
		this.completer = completer;
		this.stubborn = stubborn;
		this.brake = brake;
	}

	/**
	 * Announce messages that are about to be handled, in the order of their ids.
	 */
	void expect(List<PgqueMessage> messages) {
		this.lock.lock();
		try {
			messages.forEach((message) -> this.completer.expect(message.id()));
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Note what came of a message.
	 * @return {@code null} to go on; otherwise how the batch has to end: no further
	 * message of it is to be handled
	 */
	@Nullable BatchEnd note(PgqueMessage message, Outcome outcome) {
		this.lock.lock();
		try {
			if (outcome instanceof Outcome.Handled) {
				this.completer.handled(message);
				succeeded();
			}
			else if (outcome instanceof Outcome.Skipped) {
				this.completer.skipped(message);
			}
			else if (outcome instanceof Outcome.Decided decided) {
				decided(message, decided);
			}
			else if (outcome instanceof Outcome.Open) {
				this.completer.left(message);
			}
			else if (outcome instanceof Outcome.Held) {
				this.completer.held(message);
			}
			else if (outcome instanceof Outcome.Interrupted) {
				return interrupted(message);
			}
			else if (outcome instanceof Outcome.Failed failed) {
				return failed(message, failed);
			}
			else if (outcome instanceof Outcome.Refused refused) {
				return BatchEnd.refused(refused.failure());
			}
			return null;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return whether a message has to wait for another one of its key.
	 */
	boolean isHeld(PgqueMessage message) {
		if (!this.completer.keepsKeys()) {
			return false;
		}
		this.lock.lock();
		try {
			return this.completer.isHeld(message);
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Choose from messages that are to be handed over together, and hold back those that
	 * have to wait for one that isn't among them.
	 * @return the others
	 */
	List<PgqueMessage> admit(List<PgqueMessage> messages) {
		if (!this.completer.keepsKeys()) {
			return messages;
		}
		this.lock.lock();
		try {
			return this.completer.admit(messages);
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Note what is to be sent when a message is settled as done.
	 */
	void reply(PgqueMessage message, Outcome.PreparedReply reply) {
		this.lock.lock();
		try {
			this.completer.reply(message, reply);
		}
		finally {
			this.lock.unlock();
		}
	}

	private void decided(PgqueMessage message, Outcome.Decided decided) {
		String reason = FailureReason.storable((decided.reason() != null) ? decided.reason() : "not acknowledged");
		if (decided.action() instanceof FailureAction.Retry retry) {
			this.completer.retry(message, retry.delay(), reason);
		}
		else {
			this.completer.deadLetter(message, reason);
		}
	}

	/**
	 * Note that all messages with lower ids and without an outcome are done.
	 */
	void acknowledgeBefore(long messageId) {
		this.lock.lock();
		try {
			this.completer.handledBefore(messageId);
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Whether a message of the batch has no outcome yet.
	 */
	boolean isOpen(PgqueMessage message) {
		this.lock.lock();
		try {
			return message.batchId() == this.completer.batchId() && this.completer.isOpen(message.id());
		}
		finally {
			this.lock.unlock();
		}
	}

	private BatchEnd interrupted(PgqueMessage message) {
		logger.warn("The handler of message " + message.id() + " of " + this.identity
				+ " did not end within the shutdown timeout of " + this.properties.getShutdownTimeout()
				+ " and was interrupted. The message comes again; this doesn't count as a failure");
		return BatchEnd.CONTINUE;
	}

	private @Nullable BatchEnd failed(PgqueMessage message, Outcome.Failed failed) {
		FailureAction action = failed.action();
		if (action instanceof FailureAction.AbortBatch && this.stubborn.abortedTooOften(message.id())) {
			// So many times at one message: it is not the times that are bad.
			action = FailureAction.retry(MAX_ABORTS_DELAY);
		}
		if (action instanceof FailureAction.AbortBatch abort) {
			logAbort(message, failed.failure(), abort.pause());
			return BatchEnd.aborted(abort.pause(), message.id(), failed.failure());
		}
		if (action instanceof FailureAction.Retry retry) {
			return retry(message, failed, retry.delay());
		}
		if (action instanceof FailureAction.DeadLetter) {
			log(message, failed, "it becomes a dead letter");
			this.completer.deadLetter(message, FailureReason.of(failed.failure()));
		}
		else {
			log(message, failed, "skipped");
			this.completer.skipped(message);
		}
		return null;
	}

	private @Nullable BatchEnd retry(PgqueMessage message, Outcome.Failed failed, Duration delay) {
		// What others share is counted once, and a type that nobody takes tells nothing.
		FailureBrake.Pause pause = (failed.echo() || failed.failure() instanceof UnknownEventTypeException) ? null
				: this.brake.failed(message.id(), message.deliveryAttempt() > 1 && !failed.together());
		if (pause == null || pause.counted()) {
			log(message, failed, "it comes again in " + text(delay) + " unless that was its last attempt");
			this.completer.retry(message, delay, FailureReason.of(failed.failure()));
		}
		if (pause == null) {
			return null;
		}
		String text = "Batch " + message.batchId() + " of " + this.identity + " is left alone for "
				+ text(pause.duration()) + " at message " + message.id() + ", after " + pause.failures()
				+ " failures in a row";
		if (pause.first() && !pause.counted()) {
			logger.warn(text, failed.failure());
		}
		else {
			logger.warn(text + ": " + FailureReason.of(failed.failure()));
		}
		return BatchEnd.aborted(pause.duration(), message.id(), failed.failure());
	}

	private void succeeded() {
		int failures = this.brake.succeeded();
		if (failures > 0) {
			logger.info(this.identity + " can handle messages again, after " + failures + " failures in a row");
		}
	}

	private static String text(Duration duration) {
		return DurationFormatterUtils.print(duration, DurationFormat.Style.COMPOSITE);
	}

	/**
	 * An outage ends many batches at the same message: one stack trace, then lines.
	 */
	private void logAbort(PgqueMessage message, Exception failure, Duration pause) {
		String text = "Batch " + message.batchId() + " of " + this.identity + " is left alone for " + text(pause)
				+ " at message " + message.id();
		if (this.stubborn.isRepeated()) {
			logger.warn(text + ": " + FailureReason.of(failure));
		}
		else {
			logger.warn(text, failure);
		}
	}

	/**
	 * Tell about a failure, the first time with its stack trace, unless there are many.
	 */
	private void log(PgqueMessage message, Outcome.Failed failed, String consequence) {
		Exception failure = failed.failure();
		String text = "Message " + message.id() + " (type '" + message.type() + "', attempt "
				+ message.deliveryAttempt() + ") of " + this.identity + " failed, " + consequence;
		if (!failed.echo()) {
			this.failures++;
		}
		if (failed.echo() || this.failures > LINES_PER_BATCH) {
			logger.debug(text, failure);
		}
		else if (message.deliveryAttempt() == 1 && this.stackTraces < STACK_TRACES_PER_BATCH
				&& !(failure instanceof UnknownEventTypeException)) {
			this.stackTraces++;
			logger.warn(text, failure);
		}
		else {
			logger.warn(text + ": " + FailureReason.of(failure));
		}
		if (!failed.echo() && this.failures == LINES_PER_BATCH) {
			logger.warn("More than " + LINES_PER_BATCH + " messages of batch " + message.batchId() + " of "
					+ this.identity + " failed; the others are told at level DEBUG");
		}
	}

	BatchCompleter completer() {
		return this.completer;
	}

	/**
	 * Remembers the message at which batches end, from one batch to the next.
	 */
	static final class StubbornMessages {

		/**
		 * So often in a row one message may end its batch, as in an outage of something
		 * that all messages need; then it is retried like others that fail, and those
		 * behind it go on.
		 */
		static final int MAX_ABORTS = 20;

		private long messageId = -1;

		private int aborts;

		/**
		 * Note that a message is to end its batch.
		 * @return whether it has done so too often
		 */
		boolean abortedTooOften(long messageId) {
			this.aborts = (messageId == this.messageId) ? this.aborts + 1 : 1;
			this.messageId = messageId;
			return this.aborts > MAX_ABORTS;
		}

		boolean isRepeated() {
			return this.aborts > 1;
		}

	}

}
