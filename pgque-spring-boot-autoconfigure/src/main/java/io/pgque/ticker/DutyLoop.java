package io.pgque.ticker;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

import org.springframework.dao.NonTransientDataAccessResourceException;
import org.springframework.dao.RecoverableDataAccessException;
import org.springframework.dao.TransientDataAccessResourceException;

/**
 * What one of the ticker's threads does: each duty when it is due, each call in a
 * transaction of its own. A duty that fails is postponed and keeps no other from being
 * done; when the database is out of reach, all of them wait.
 */
abstract class DutyLoop implements Runnable {

	private static final Log logger = LogFactory.getLog(PgqueTicker.class);

	private static final Duration LONGEST_WAIT = Duration.ofSeconds(30);

	static final String REACH = "reach the database";

	private final Nudges nudges;

	private final Failures failures;

	/**
	 * Create a loop.
	 * @param nudges what it waits on, and what stops it
	 * @param failures remembers what failed
	 */
	DutyLoop(Nudges nudges, Failures failures) {
		this.nudges = nudges;
		this.failures = failures;
	}

	final Nudges nudges() {
		return this.nudges;
	}

	final Failures failures() {
		return this.failures;
	}

	final void stop() {
		this.nudges.stop();
	}

	/**
	 * Return what is to be done.
	 */
	abstract List<Duty> duties();

	/**
	 * Do what can't wait for the duties; called before and between them.
	 * @return how long everything has to wait, zero when nothing stands in the way
	 */
	abstract Duration first();

	@Override
	public final void run() {
		while (!this.nudges.isStopped()) {
			try {
				Duration pause = work();
				if (pause.isZero()) {
					this.nudges.await(nextDue());
				}
				else {
					this.nudges.pause(System.nanoTime() + pause.toNanos());
				}
			}
			catch (InterruptedException ex) {
				// The stop, in a hurry, ends the loop by its flag; nobody else does.
				logger.debug("The ticker was interrupted", ex);
			}
		}
	}

	private long nextDue() {
		long next = System.nanoTime() + LONGEST_WAIT.toNanos();
		for (Duty duty : duties()) {
			next = (duty.due() - next < 0) ? duty.due() : next;
		}
		return next;
	}

	private Duration work() {
		Duration pause = first();
		for (Duty duty : duties()) {
			if (!pause.isZero() || this.nudges.isStopped()) {
				return pause;
			}
			if (duty.due() - System.nanoTime() <= 0) {
				pause = attempt(duty.name(), duty::run, duty::postpone);
			}
			if (pause.isZero()) {
				pause = first();
			}
		}
		return pause;
	}

	/**
	 * Do something.
	 * @param name what, as the object of a sentence such as "could not ..."
	 * @param action does it
	 * @param postpone told how long it has to wait, when it fails
	 * @return how long everything has to wait
	 */
	final Duration attempt(String name, Runnable action, Consumer<Duration> postpone) {
		try {
			action.run();
			this.failures.succeeded(REACH);
			this.failures.succeeded(name);
			return Duration.ZERO;
		}
		catch (RuntimeException | Error ex) {
			if (this.nudges.isStopped()) {
				return Duration.ZERO;
			}
			boolean outOfReach = isOutOfReach(ex);
			Duration delay = this.failures.failed(outOfReach ? REACH : name, ex);
			postpone.accept(delay);
			return (outOfReach || Failures.needsPeople(ex)) ? delay : Duration.ZERO;
		}
	}

	static boolean isOutOfReach(Throwable failure) {
		return failure instanceof NonTransientDataAccessResourceException
				|| failure instanceof TransientDataAccessResourceException
				|| failure instanceof RecoverableDataAccessException;
	}

}
