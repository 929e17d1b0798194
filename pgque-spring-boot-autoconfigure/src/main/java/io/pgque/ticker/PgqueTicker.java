package io.pgque.ticker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import javax.sql.DataSource;

import io.pgque.client.PgqueClient;
import io.pgque.core.CommitListener;
import io.pgque.core.TickDelegate;
import io.pgque.core.TickListener;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.context.SmartLifecycle;
import org.springframework.util.Assert;

/**
 * Makes committed events visible to consumers, and keeps the log in shape: ticks on an
 * interval and at once after commits of this instance, moves due retries back, rotates
 * and cleans up. Any number of instances may run one, the engine lets one at a time work
 * on a queue.
 *
 * <p>
 * There are two daemon threads: one ticks, the other runs the maintenance, which may take
 * long and which no tick waits for. Both outlive every failure: they say so, wait longer
 * each time and go on. {@link #stop()} returns within a second, also when the database
 * doesn't answer.
 *
 * @since 0.1.0
 */
public class PgqueTicker implements CommitListener, SmartLifecycle {

	/**
	 * The phase in which the ticker starts: before the listener containers, and stops:
	 * after them.
	 */
	public static final int PHASE = Integer.MAX_VALUE - 200;

	private static final Log logger = LogFactory.getLog(PgqueTicker.class);

	private static final Duration STATEMENT_TIMEOUT = Duration.ofSeconds(30);

	/**
	 * Maintenance, or one hook of a queue, may take its time but not for ever.
	 */
	private static final Duration MAINTENANCE_TIMEOUT = Duration.ofMinutes(10);

	private static final Duration STOP_WITHIN = Duration.ofMillis(700);

	private final PgqueClient client;

	private final PgqueClient maintenanceClient;

	private final TickerSettings settings;

	private volatile TickListener tickListener = (queue, tickId) -> {
	};

	private volatile TickDelegate tickDelegate = (queue, handBack) -> false;

	private final Object lifecycle = new Object();

	private volatile @Nullable TickerLoop loop;

	private final List<Worker> workers = new ArrayList<>();

	/**
	 * Creates a ticker.
	 * @param dataSource leads to the database
	 * @param settings how it works
	 */
	public PgqueTicker(DataSource dataSource, TickerSettings settings) {
		this(dataSource, settings, STATEMENT_TIMEOUT);
	}

	/**
	 * Creates a ticker.
	 * @param dataSource leads to the database
	 * @param settings how it works
	 * @param statementTimeout the longest time that a tick, or moving what is due, may
	 * take, at least one second; the maintenance has ten minutes
	 * @since 0.2.0
	 */
	public PgqueTicker(DataSource dataSource, TickerSettings settings, Duration statementTimeout) {
		this(dataSource, settings, statementTimeout, MAINTENANCE_TIMEOUT);
	}

	PgqueTicker(DataSource dataSource, TickerSettings settings, Duration statementTimeout,
			Duration maintenanceTimeout) {
		Assert.notNull(settings, "settings must not be null");
		Assert.notNull(statementTimeout, "statementTimeout must not be null");
		this.client = new PgqueClient(dataSource, statementTimeout);
		this.maintenanceClient = new PgqueClient(dataSource, maintenanceTimeout);
		this.settings = settings;
	}

	/**
	 * Set who is told of ticks, such as listeners of this instance.
	 * @param tickListener the listener
	 */
	public void setTickListener(TickListener tickListener) {
		Assert.notNull(tickListener, "tickListener must not be null");
		this.tickListener = tickListener;
	}

	/**
	 * Set who is offered the ticks after commits of this instance first. Those that it
	 * takes count for {@link TickerSettings#minInterval()} as the ticker's own do.
	 * @param tickDelegate the delegate
	 * @since 0.2.0
	 */
	public void setTickDelegate(TickDelegate tickDelegate) {
		Assert.notNull(tickDelegate, "tickDelegate must not be null");
		this.tickDelegate = tickDelegate;
	}

	@Override
	public void committed(Set<String> queues) {
		TickerLoop current = this.loop;
		if (current == null || !this.settings.onCommit()) {
			return;
		}
		List<String> own = new ArrayList<>(queues.size());
		for (String queue : queues) {
			if (!current.delegate(queue, this.tickDelegate)) {
				own.add(queue);
			}
		}
		if (!own.isEmpty()) {
			current.nudge(own);
		}
	}

	@Override
	public void start() {
		synchronized (this.lifecycle) {
			if (this.loop != null || this.settings.mode() == TickerMode.OFF) {
				return;
			}
			TickerLoop started = new TickerLoop(this.client, this.settings, this.tickListener);
			this.loop = started;
			this.workers.add(Worker.start("pgque-ticker", started));
			this.workers.add(Worker.start("pgque-maintenance",
					new MaintenanceLoop(this.maintenanceClient, this.settings, started.failures())));
		}
	}

	@Override
	public void stop() {
		synchronized (this.lifecycle) {
			this.loop = null;
			this.workers.forEach((worker) -> worker.loop().stop());
			long end = System.nanoTime() + STOP_WITHIN.toNanos();
			try {
				for (Worker worker : this.workers) {
					worker.awaitEnd(end);
				}
			}
			catch (InterruptedException ex) {
				Thread.currentThread().interrupt();
			}
			this.workers.clear();
		}
	}

	@Override
	public boolean isRunning() {
		return this.loop != null;
	}

	@Override
	public int getPhase() {
		return PHASE;
	}

	/**
	 * Return how the ticker works.
	 * @return the settings
	 */
	public TickerSettings getSettings() {
		return this.settings;
	}

	/**
	 * A thread and what it does.
	 *
	 * @param thread the thread
	 * @param loop what it does
	 */
	private record Worker(Thread thread, DutyLoop loop) {

		static Worker start(String name, DutyLoop loop) {
			Thread thread = new Thread(loop, name);
			thread.setDaemon(true);
			thread.start();
			return new Worker(thread, loop);
		}

		void awaitEnd(long end) throws InterruptedException {
			join((end - System.nanoTime()) / 2);
			if (this.thread.isAlive()) {
				// Ends a wait for a connection of the pool.
				this.thread.interrupt();
				join(end - System.nanoTime());
			}
			if (this.thread.isAlive()) {
				logger.warn("The last statement of thread '" + this.thread.getName()
						+ "' has not come back; not waiting for it");
			}
		}

		private void join(long nanos) throws InterruptedException {
			this.thread.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(nanos)));
		}

	}

}
