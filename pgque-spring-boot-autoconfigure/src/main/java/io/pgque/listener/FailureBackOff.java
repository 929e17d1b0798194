package io.pgque.listener;

import java.time.Duration;

import org.apache.commons.logging.Log;

/**
 * Slows a loop down while something keeps failing, and tells about it with one stack
 * trace and then one line a time.
 */
final class FailureBackOff {

	private final Log logger;

	private final String activity;

	private final Duration initial;

	private final Duration max;

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
		this.initial = initial;
		this.max = max;
	}

	/**
	 * Note a failure.
	 * @return how long to wait before trying again
	 */
	Duration failed(Throwable failure) {
		int doublings = Math.min(this.failures, 30);
		this.failures++;
		long millis = Math.min(this.max.toMillis(), this.initial.toMillis() << doublings);
		String text = this.activity + " failed, trying again in " + millis + " ms";
		if (this.failures == 1) {
			this.logger.warn(text, failure);
		}
		else {
			this.logger.warn(text + " (failure " + this.failures + " in a row): " + failure);
		}
		return Duration.ofMillis(millis);
	}

	void succeeded() {
		if (this.failures > 0) {
			this.logger.info(this.activity + " works again, after " + this.failures
					+ ((this.failures == 1) ? " failure" : " failures"));
			this.failures = 0;
		}
	}

}
