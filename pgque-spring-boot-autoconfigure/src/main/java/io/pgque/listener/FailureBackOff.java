package io.pgque.listener;

import java.time.Duration;

import io.pgque.support.DoublingDelay;
import org.apache.commons.logging.Log;

/**
 * Slows a loop down while something keeps failing, and tells about it with one stack
 * trace and then one line a time.
 */
final class FailureBackOff {

	private final Log logger;

	private final String activity;

	private final DoublingDelay delay;

	private int failures;

	/**
	 * Create a back-off.
	 * @param logger where failures and recovery are told
	 * @param activity what fails, as the beginning of a sentence
	 * @param initial the delay after the first failure
	 * @param max the longest delay
	 */
	FailureBackOff(Log logger, String activity, Duration initial, Duration max) {
		this.logger = logger;
		this.activity = activity;
		this.delay = new DoublingDelay(initial, max);
	}

	/**
	 * Note a failure.
	 * @return how long to wait before trying again
	 */
	Duration failed(Throwable failure) {
		this.failures++;
		Duration delay = this.delay.after(this.failures);
		String text = this.activity + " failed, trying again in " + delay.toMillis() + " ms";
		if (this.failures == 1) {
			this.logger.warn(text, failure);
		}
		else {
			this.logger.warn(text + " (failure " + this.failures + " in a row): " + failure);
		}
		return delay;
	}

	void succeeded() {
		if (this.failures > 0) {
			this.logger.info(this.activity + " works again, after " + this.failures
					+ ((this.failures == 1) ? " failure" : " failures"));
			this.failures = 0;
		}
	}

}
