package io.pgque.ticker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

import io.pgque.client.PgqueClient;
import io.pgque.client.TickResult;
import io.pgque.core.TickDelegate;
import io.pgque.core.TickListener;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Ticks: after commits and on the interval. Also moves what is due to its queue, which is
 * quick; what may take its time is the {@link MaintenanceLoop}'s.
 */
final class TickerLoop extends DutyLoop {

	private static final Log logger = LogFactory.getLog(PgqueTicker.class);

	private static final Duration BUSY_DELAY = Duration.ofMillis(2);

	private static final Duration SCHEDULER_INTERVAL = Duration.ofSeconds(30);

	/**
	 * How much longer intervals are while nothing happens. Interval ticks are for what
	 * commits elsewhere, without a ticker of its own: three times the default keeps that
	 * below half a second.
	 */
	private static final int IDLE_FACTOR = 3;

	/**
	 * How long commits to a queue that nobody reads wait for a tick: it only marks where
	 * whoever subscribes next begins, but would take a sixth of a busy machine.
	 */
	private static final Duration UNREAD_REST = Duration.ofMillis(200);

	private final PgqueClient client;

	private final TickListener tickListener;

	private final long busyDelay;

	private final Map<String, String> failedQueues = new HashMap<>();

	private final List<Duty> duties = new ArrayList<>();

	private final List<Duty> adaptive;

	private boolean standDown;

	/**
	 * Whether the last attempt to tick has reached the engine.
	 */
	private volatile boolean ticking;

	/**
	 * Whether somebody else has taken a tick since the loop looked.
	 */
	private volatile boolean delegated;

	TickerLoop(PgqueClient client, TickerSettings settings, TickListener tickListener) {
		super(new Nudges(settings.minInterval().toNanos()), new Failures(logger));
		this.client = client;
		this.tickListener = tickListener;
		this.busyDelay = Math.max(settings.minInterval().toNanos(), BUSY_DELAY.toNanos());
		this.adaptive = List.of(new Duty("tick queues", settings.interval(), IDLE_FACTOR, this::tickAll),
				new Duty("move due retries", settings.retryInterval(), IDLE_FACTOR,
						() -> repeat(client::moveDueRetries)),
				new Duty("send delayed events", settings.retryInterval(), IDLE_FACTOR,
						() -> repeat(client::deliverDelayed)));
		if (settings.mode() == TickerMode.AUTO) {
			this.duties.add(new Duty("look for a scheduler", SCHEDULER_INTERVAL, this::lookForScheduler));
		}
		this.duties.addAll(this.adaptive);
	}

	void nudge(Collection<String> queues) {
		nudges().add(queues);
	}

	/**
	 * Let somebody else tick a queue that may have its tick now. While the ticker can't
	 * tick, nobody can, and it is the ticker that says why.
	 * @return whether somebody does
	 */
	boolean delegate(String queue, TickDelegate delegate) {
		if (!this.ticking || !nudges().isDue(queue) || !delegate.offerTick(queue, () -> nudge(List.of(queue)))) {
			return false;
		}
		nudges().delegated(queue);
		this.delegated = true;
		return true;
	}

	@Override
	List<Duty> duties() {
		return this.duties;
	}

	@Override
	Duration first() {
		List<String> queues = nudges().take(System.nanoTime());
		if (this.delegated || !queues.isEmpty()) {
			this.delegated = false;
			this.adaptive.forEach(Duty::wakeUp);
		}
		if (queues.isEmpty()) {
			return Duration.ZERO;
		}
		return attempt("tick after commits", () -> tick(queues),
				(delay) -> nudges().addLater(queues, System.nanoTime() + delay.toNanos()));
	}

	private void tick(List<String> queues) {
		long start = System.nanoTime();
		List<TickResult> results = results(() -> this.client.tick(queues));
		long took = System.nanoTime() - start;
		for (TickResult result : results) {
			note(result, took);
			if (result.outcome() == TickResult.Outcome.BUSY) {
				// The other session's tick may be too early for the commit that we serve.
				nudges().addLater(List.of(result.queue()), System.nanoTime() + this.busyDelay);
			}
		}
	}

	private boolean tickAll() {
		if (this.standDown) {
			return false;
		}
		List<TickResult> results = results(this.client::tickAll);
		results.forEach((result) -> note(result, 0));
		return !results.isEmpty();
	}

	private List<TickResult> results(Supplier<List<TickResult>> tick) {
		boolean done = false;
		try {
			List<TickResult> results = tick.get();
			done = true;
			return results;
		}
		finally {
			this.ticking = done;
		}
	}

	private void note(TickResult result, long took) {
		switch (result.outcome()) {
			case TICKED -> {
				if (result.isUnread()) {
					nudges().rest(result.queue(), UNREAD_REST.toNanos());
				}
				else {
					nudges().ticked(result.queue(), took);
				}
				if (result.tickId() != null) {
					this.tickListener.ticked(result.queue(), result.tickId());
				}
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

	private boolean repeat(IntSupplier step) {
		int done = step.getAsInt();
		boolean busy = done > 0;
		while (done > 0 && !nudges().isStopped()) {
			done = step.getAsInt();
		}
		return busy;
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
