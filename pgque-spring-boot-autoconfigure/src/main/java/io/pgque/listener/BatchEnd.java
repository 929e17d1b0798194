package io.pgque.listener;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * How a batch ended, or that it has to end before its last message.
 *
 * @param pause how long to leave the rest alone
 * @param refusal why the container has to stop, {@code null} when it hasn't
 * @param abort what ended the batch early, {@code null} when nothing did that is worth
 * telling
 */
record BatchEnd(Duration pause, @Nullable UnknownEventTypeException refusal, @Nullable Abort abort) {

	/**
	 * Go on at once.
	 */
	static final BatchEnd CONTINUE = new BatchEnd(Duration.ZERO, null, null);

	static BatchEnd aborted(Duration pause, long messageId, Exception failure) {
		return new BatchEnd(pause, null, new Abort(messageId, failure));
	}

	static BatchEnd refused(UnknownEventTypeException refusal) {
		return new BatchEnd(Duration.ZERO, refusal, null);
	}

	/**
	 * What ended a batch early.
	 *
	 * @param messageId the message at which it ended
	 * @param failure the failure of that message
	 */
	record Abort(long messageId, Exception failure) {
	}

}
