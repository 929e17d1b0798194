package io.pgque.ticker;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import io.pgque.MissingPrivilegeException;
import io.pgque.PgqueSchemaException;
import io.pgque.UnsupportedDatabaseException;
import io.pgque.support.DoublingDelay;
import io.pgque.support.TraceLimit;
import org.apache.commons.logging.Log;

/**
 * Remembers what fails, says so once with all details and then shortly, and tells how
 * long to wait. What fails, works and fails again gets no other stack trace for a while.
 * What only a person can mend is said once and tried again each minute. Written by one
 * thread, others may ask.
 */
final class Failures {

	static final Duration FIRST_DELAY = Duration.ofMillis(100);

	static final Duration LONGEST_DELAY = Duration.ofSeconds(5);

	static final Duration DELAY_FOR_PEOPLE = Duration.ofMinutes(1);

	private static final DoublingDelay DELAY = new DoublingDelay(FIRST_DELAY, LONGEST_DELAY);

	private final Log logger;

	private final TraceLimit traces = new TraceLimit(Duration.ofMinutes(1));

	private final Map<String, Integer> counts = new ConcurrentHashMap<>();

	private volatile boolean saidForPeople;

	private volatile boolean succeeded;

	Failures(Log logger) {
		this.logger = logger;
	}

	/**
	 * Note a failure.
	 * @param subject what failed, such as "tick queues"
	 * @param failure why
	 * @return how long to wait
	 */
	Duration failed(String subject, Throwable failure) {
		if (needsPeople(failure)) {
			if (!this.saidForPeople) {
				this.logger.warn("This instance does not tick: " + failure.getMessage()
						+ ". Where others tick, set pgque.ticker.mode=off. Trying again each minute");
				this.saidForPeople = true;
			}
			return DELAY_FOR_PEOPLE;
		}
		int count = this.counts.merge(subject, 1, Integer::sum);
		Duration delay = DELAY.after(count);
		if (count == 1 && this.traces.isDue(failure)) {
			this.logger.warn("Could not " + subject + ", trying again", failure);
		}
		else if (count == 1) {
			this.logger.warn("Could not " + subject + ", trying again: " + failure.getMessage());
		}
		else {
			this.logger.warn("Could not " + subject + " for the " + count + ". time, trying again in "
					+ delay.toMillis() + " ms: " + failure.getMessage());
		}
		return delay;
	}

	void succeeded(String subject) {
		this.succeeded = true;
		Integer count = this.counts.remove(subject);
		if (count != null) {
			this.logger.info("Can " + subject + " again, after " + count + ((count == 1) ? " failure" : " failures"));
		}
		if (this.saidForPeople) {
			this.saidForPeople = false;
			this.logger.info("This instance ticks now");
		}
	}

	/**
	 * Return whether anything has succeeded yet.
	 */
	boolean hasSucceeded() {
		return this.succeeded;
	}

	/**
	 * Return whether something keeps failing.
	 */
	boolean isFailing(String subject) {
		return this.counts.containsKey(subject);
	}

	/**
	 * Return whether somebody has to mend something first.
	 */
	boolean isForPeople() {
		return this.saidForPeople;
	}

	static boolean needsPeople(Throwable failure) {
		return failure instanceof MissingPrivilegeException || failure instanceof PgqueSchemaException
				|| failure instanceof UnsupportedDatabaseException;
	}

}
