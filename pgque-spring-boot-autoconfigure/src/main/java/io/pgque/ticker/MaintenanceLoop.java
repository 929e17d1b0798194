package io.pgque.ticker;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import io.pgque.client.MaintenanceHook;
import io.pgque.client.PgqueClient;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Keeps the log in shape, on a thread and a connection of its own: no tick waits for it.
 * Each hook of a queue is run by itself, so that a slow one takes nothing else down when
 * it is cancelled.
 */
final class MaintenanceLoop extends DutyLoop {

	private static final Log logger = LogFactory.getLog(PgqueTicker.class);

	private static final Duration BARRED = Duration.ofSeconds(1);

	private static final Duration NOT_YET = Duration.ofMillis(10);

	private final PgqueClient client;

	private final Failures tickerFailures;

	private final List<Duty> duties;

	private final Map<MaintenanceHook, String> failedHooks = new HashMap<>();

	/**
	 * Create a loop.
	 * @param client its statements may take as long as maintenance may
	 * @param settings how often
	 * @param tickerFailures tell whether the database is there and lets this instance
	 * work, which is said once and not here
	 */
	MaintenanceLoop(PgqueClient client, TickerSettings settings, Failures tickerFailures) {
		super(new Nudges(0), new Failures(logger));
		this.client = client;
		this.tickerFailures = tickerFailures;
		this.duties = List.of(new Duty("finish rotations", settings.rotationInterval(), client::finishRotation),
				new Duty("run the maintenance", settings.maintenanceInterval(), client::maintain),
				new Duty("run the hooks of queues", settings.maintenanceInterval(), this::runHooks));
	}

	@Override
	List<Duty> duties() {
		return this.duties;
	}

	@Override
	Duration first() {
		if (this.tickerFailures.isForPeople() || this.tickerFailures.isFailing(REACH)) {
			return BARRED;
		}
		return this.tickerFailures.hasSucceeded() ? Duration.ZERO : NOT_YET;
	}

	private void runHooks() {
		for (MaintenanceHook hook : this.client.maintenanceHooks()) {
			if (nudges().isStopped()) {
				return;
			}
			try {
				this.client.runHook(hook);
				this.failedHooks.remove(hook);
			}
			catch (RuntimeException ex) {
				if (isOutOfReach(ex)) {
					throw ex;
				}
				note(hook, String.valueOf(ex.getMessage()));
			}
		}
	}

	private void note(MaintenanceHook hook, String failure) {
		if (!nudges().isStopped() && !failure.equals(this.failedHooks.put(hook, failure))) {
			logger.warn("Could not run hook " + hook.hook() + " of queue '" + hook.queue()
					+ "', others go on; trying again with the next maintenance: " + failure);
		}
	}

}
