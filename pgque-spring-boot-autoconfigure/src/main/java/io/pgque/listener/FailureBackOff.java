package io.pgque.listener;

import java.time.Duration;

import io.pgque.support.DoublingDelay;
import io.pgque.support.TraceLimit;
import org.apache.commons.logging.Log;

/**
 * Slows a loop down while something keeps failing, and tells about it with one stack
 * trace and then one line a time. What fails, works and fails again gets no other stack
 * trace for a while.
 */
final class FailureBackOff {

	private static final Duration TRACE_PERIOD = Duration.ofMinutes(1);

	private final Log logger;

	private final String activity;

	private final DoublingDelay delay;

	private final Observer observer;

	private final TraceLimit traces = new TraceLimit(TRACE_PERIOD);

	private int failures;

	/**
	 * Create a back-off.
	 * @param logger where failures and recovery are told
	 * @param activity what fails, as the beginning of a sentence
	 * @param initial the delay after the first failure
	 * @param max the longest delay
	 */
	FailureBackOff(Log logger, String activity, Duration initial, Duration max) {
		this(logger, activity, initial, max, Observer.NONE);
	}

	/**
	 * Create a back-off that others learn from.
	 * @param logger where failures and recovery are told
	 * @param activity what fails, as the beginning of a sentence
	 * @param initial the delay after the first failure
	 * @param max the longest delay
	 * @param observer is told when it begins to fail and when it works again
	 */
	FailureBackOff(Log logger, String activity, Duration initial, Duration max, Observer observer) {
		this.logger = logger;
		this.activity = activity;
		this.delay = new DoublingDelay(initial, max);
		this.observer = observer;
	}

	/**
	 * Note a failure.
	 * @return how long to wait before trying again
	 */
	Duration failed(Throwable failure) {
		this.failures++;
		Duration delay = this.delay.after(this.failures);
		String text = this.activity + " failed, trying again in " + delay.toMillis() + " ms";
		if (this.failures > 1) {
			this.logger.warn(text + " (failure " + this.failures + " in a row): " + failure);
			return delay;
		}
		if (this.traces.isDue(failure)) {
			this.logger.warn(text, failure);
		}
		else {
			this.logger.warn(text + ": " + failure);
		}
		this.observer.failing(failure);
		return delay;
	}

	void succeeded() {
		if (this.failures > 0) {
			this.logger.info(this.activity + " works again, after " + this.failures
					+ ((this.failures == 1) ? " failure" : " failures"));
			this.failures = 0;
			this.observer.recovered();
		}
	}

	/**
	 * Is told when something begins to fail, and when it works again.
	 */
	interface Observer {

		/**
		 * Nobody wants to know.
		 */
		Observer NONE = new Observer() {

			@Override
			public void failing(Throwable failure) {
			}

			@Override
			public void recovered() {
			}

		};

		/**
		 * It failed, and had worked before.
		 * @param failure the failure
		 */
		void failing(Throwable failure);

		/**
		 * It works again.
		 */
		void recovered();

	}

}
