package io.pgque.listener;

import java.time.Duration;

import org.springframework.util.Assert;

/**
 * What becomes of a message whose handler failed.
 *
 * @since 0.1.0
 * @see PgqueErrorHandler
 */
public sealed interface FailureAction {

	/**
	 * Deliver the message again after a delay, unless it has used up the retries of its
	 * queue: then it becomes a dead letter.
	 * @param delay the delay, to the millisecond
	 * @return the action
	 */
	static FailureAction retry(Duration delay) {
		return new Retry(delay);
	}

	/**
	 * Make the message a dead letter now, whatever retries are left.
	 * @return the action
	 */
	static FailureAction deadLetter() {
		return new DeadLetter();
	}

	/**
	 * Take the message as done.
	 * @return the action
	 */
	static FailureAction skip() {
		return new Skip();
	}

	/**
	 * Settle what was done before this message and leave the rest of the batch alone for
	 * a while; then go on with this message, which does not count as failed.
	 * @param pause the time to wait
	 * @return the action
	 */
	static FailureAction abortBatch(Duration pause) {
		return new AbortBatch(pause);
	}

	/**
	 * Deliver the message again after a delay.
	 *
	 * @param delay the delay
	 */
	record Retry(Duration delay) implements FailureAction {

		/**
		 * Create the action.
		 */
		public Retry {
			Assert.isTrue(!delay.isNegative(), () -> "delay must not be negative: " + delay);
		}

	}

	/**
	 * Make the message a dead letter.
	 */
	record DeadLetter() implements FailureAction {
	}

	/**
	 * Take the message as done.
	 */
	record Skip() implements FailureAction {
	}

	/**
	 * Leave the message and the rest of its batch alone for a while.
	 *
	 * @param pause the time to wait
	 */
	record AbortBatch(Duration pause) implements FailureAction {

		/**
		 * Create the action.
		 */
		public AbortBatch {
			Assert.isTrue(!pause.isNegative(), () -> "pause must not be negative: " + pause);
		}

	}

}
