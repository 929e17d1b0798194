package io.pgque.listener;

import java.time.Duration;

import io.pgque.support.DoublingDelay;
import org.jspecify.annotations.Nullable;

/**
 * Notices that everything fails, as in an outage of something that all messages need, and
 * has the container pause then. After a pause one handler is called; when that fails too,
 * the next pause is longer.
 */
final class FailureBrake {

	/**
	 * So often one message is tried between pauses before that counts as a failed
	 * attempt: it may be the message after all, and must not keep the others waiting for
	 * ever.
	 */
	static final int FREE_ATTEMPTS = 2;

	private final int threshold;

	private final DoublingDelay delay;

	private int failures;

	private int pauses;

	private long messageId = -1;

	private int attempts;

	FailureBrake(PgqueContainerProperties properties) {
		this.threshold = properties.getFailureBrakeThreshold();
		this.delay = new DoublingDelay(properties.getFailureBrakePause(), properties.getFailureBrakeMaxPause());
	}

	/**
	 * Note a failure that is to be retried. Redeliveries come together, and each has
	 * failed before: that they fail again in a row says nothing about the others, unless
	 * everything fails already.
	 * @param redelivered whether the message, handed over alone, has failed before
	 * @return the pause that is due, {@code null} to go on
	 */
	@Nullable Pause failed(long messageId, boolean redelivered) {
		if (redelivered && this.pauses == 0) {
			return null;
		}
		this.failures++;
		if (this.threshold == 0 || this.failures < this.threshold) {
			return null;
		}
		this.pauses++;
		this.attempts = (messageId == this.messageId) ? this.attempts + 1 : 1;
		this.messageId = messageId;
		return new Pause(this.delay.after(this.pauses), this.failures, this.pauses == 1, this.attempts > FREE_ATTEMPTS);
	}

	/**
	 * Note that a handler ended normally.
	 * @return how many failures have come to their end, zero when there was no pause
	 */
	int succeeded() {
		int ended = (this.pauses > 0) ? this.failures : 0;
		this.failures = 0;
		this.pauses = 0;
		this.messageId = -1;
		return ended;
	}

	/**
	 * A pause that is due.
	 *
	 * @param duration how long
	 * @param failures how many failures there have been in a row
	 * @param first whether it is the first of its row
	 * @param counted whether the failure counts as an attempt of its message
	 */
	record Pause(Duration duration, int failures, boolean first, boolean counted) {
	}

}
