package io.pgque.ticker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.IntSupplier;

import io.pgque.client.PgqueClient;
import io.pgque.client.TickResult;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

import org.springframework.dao.NonTransientDataAccessResourceException;
import org.springframework.dao.RecoverableDataAccessException;
import org.springframework.dao.TransientDataAccessResourceException;

/**
 * What the ticker's thread does: each duty when it is due, each call in a transaction of
 * its own. A duty that fails is postponed and keeps no other from being done; when the
 * database is out of reach, all of them wait.
 */
final class TickerLoop implements Runnable {

	private static final Log logger = LogFactory.getLog(PgqueTicker.class);

	private static final String REACH = "reach the database";

	private static final Duration BUSY_DELAY = Duration.ofMillis(2);

	private static final Duration SCHEDULER_INTERVAL = Duration.ofSeconds(30);

	private final PgqueClient client;

	private final Nudges nudges;

	private final long busyDelay;

	private final Failures failures = new Failures(logger);

	private final Map<String, String> failedQueues = new HashMap<>();

	private final List<Duty> duties = new ArrayList<>();

	private boolean standDown;

	TickerLoop(PgqueClient client, TickerSettings settings) {
		this.client = client;
		this.nudges = new Nudges(settings.minInterval().toNanos());
		this.busyDelay = Math.max(settings.minInterval().toNanos(), BUSY_DELAY.toNanos());
		if (settings.mode() == TickerMode.AUTO) {
			this.duties.add(new Duty("look for a scheduler", SCHEDULER_INTERVAL, this::lookForScheduler));
		}
		this.duties.add(new Duty("tick queues", settings.interval(), this::tickAll));
		this.duties.add(new Duty("move due retries", settings.retryInterval(), this::moveRetries));
		this.duties.add(new Duty("send delayed events", settings.retryInterval(), this::deliverDelayed));
		this.duties.add(new Duty("finish rotations", settings.rotationInterval(), client::finishRotation));
		this.duties.add(new Duty("run the maintenance", settings.maintenanceInterval(), client::maintain));
	}

	void nudge(Collection<String> queues) {
		this.nudges.add(queues);
	}

	void stop() {
		this.nudges.stop();
	}

	@Override
	public void run() {
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
		long next = System.nanoTime() + SCHEDULER_INTERVAL.toNanos();
		for (Duty duty : this.duties) {
			next = (duty.due() - next < 0) ? duty.due() : next;
		}
		return next;
	}

	/**
	 * Do what is due, what commits want first.
	 * @return how long everything has to wait, zero when nothing stands in the way
	 */
	private Duration work() {
		Duration pause = tickNudged();
		for (Duty duty : this.duties) {
			if (!pause.isZero() || this.nudges.isStopped()) {
				return pause;
			}
			if (duty.due() - System.nanoTime() <= 0) {
				pause = attempt(duty.name(), duty::run, duty::postpone);
			}
			if (pause.isZero()) {
				pause = tickNudged();
			}
		}
		return pause;
	}

	private Duration tickNudged() {
		List<String> queues = this.nudges.take(System.nanoTime());
		if (queues.isEmpty()) {
			return Duration.ZERO;
		}
		return attempt("tick after commits", () -> tick(queues),
				(delay) -> this.nudges.addLater(queues, System.nanoTime() + delay.toNanos()));
	}

	/**
	 * Do something.
	 * @param postpone told how long it has to wait, when it fails
	 * @return how long everything has to wait
	 */
	private Duration attempt(String name, Runnable action, Consumer<Duration> postpone) {
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

	private static boolean isOutOfReach(Throwable failure) {
		return failure instanceof NonTransientDataAccessResourceException
				|| failure instanceof TransientDataAccessResourceException
				|| failure instanceof RecoverableDataAccessException;
	}

	private void tick(List<String> queues) {
		for (TickResult result : this.client.tick(queues)) {
			note(result);
			if (result.outcome() == TickResult.Outcome.BUSY) {
				// The other session's tick may be too early for the commit that we serve.
				this.nudges.addLater(List.of(result.queue()), System.nanoTime() + this.busyDelay);
			}
		}
	}

	private void tickAll() {
		if (!this.standDown) {
			this.client.tickAll().forEach(this::note);
		}
	}

	private void note(TickResult result) {
		switch (result.outcome()) {
			case TICKED -> {
				this.nudges.ticked(result.queue());
				this.failedQueues.remove(result.queue());
			}
			case FAILED -> {
				String detail = String.valueOf(result.detail());
				if (!detail.equals(this.failedQueues.put(result.queue(), detail))) {
					logger.warn("Could not tick queue '" + result.queue() + "', others go on: " + detail);
				}
			}
			case BUSY -> {
			}
		}
	}

	private void moveRetries() {
		repeat(this.client::moveDueRetries);
	}

	private void deliverDelayed() {
		repeat(this.client::deliverDelayed);
	}

	private void repeat(IntSupplier step) {
		int done = step.getAsInt();
		while (done > 0 && !this.nudges.isStopped()) {
			done = step.getAsInt();
		}
	}

	private void lookForScheduler() {
		String scheduler = this.client.scheduler();
		boolean found = !"manual".equals(scheduler);
		if (found != this.standDown) {
			logger
				.info(found ? "The database's " + scheduler + " ticks, so this instance does after its own commits only"
						: "The database has no scheduler that ticks, so this instance does");
		}
		this.standDown = found;
	}

}
