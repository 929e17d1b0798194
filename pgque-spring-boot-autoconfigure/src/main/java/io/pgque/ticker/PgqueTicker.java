package io.pgque.ticker;

import java.time.Duration;
import java.util.Set;

import javax.sql.DataSource;

import io.pgque.client.PgqueClient;
import io.pgque.core.CommitListener;
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
 * All of it happens on one daemon thread, which outlives every failure: it says so, waits
 * longer each time and goes on. {@link #stop()} returns within a second, also when the
 * database doesn't answer.
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

	private static final long STOP_MILLIS = 350;

	private final PgqueClient client;

	private final TickerSettings settings;

	private final Object lifecycle = new Object();

	private volatile @Nullable TickerLoop loop;

	private @Nullable Thread thread;

	/**
	 * Creates a ticker.
	 * @param dataSource leads to the database
	 * @param settings how it works
	 */
	public PgqueTicker(DataSource dataSource, TickerSettings settings) {
		Assert.notNull(settings, "settings must not be null");
		this.client = new PgqueClient(dataSource, STATEMENT_TIMEOUT);
		this.settings = settings;
	}

	@Override
	public void committed(Set<String> queues) {
		TickerLoop current = this.loop;
		if (current != null && this.settings.onCommit()) {
			current.nudge(queues);
		}
	}

	@Override
	public void start() {
		synchronized (this.lifecycle) {
			if (this.loop != null || this.settings.mode() == TickerMode.OFF) {
				return;
			}
			TickerLoop started = new TickerLoop(this.client, this.settings);
			Thread worker = new Thread(started, "pgque-ticker");
			worker.setDaemon(true);
			this.loop = started;
			this.thread = worker;
			worker.start();
		}
	}

	@Override
	public void stop() {
		synchronized (this.lifecycle) {
			TickerLoop stopped = this.loop;
			Thread worker = this.thread;
			this.loop = null;
			this.thread = null;
			if (stopped != null && worker != null) {
				stopped.stop();
				awaitEnd(worker);
			}
		}
	}

	private static void awaitEnd(Thread worker) {
		try {
			worker.join(STOP_MILLIS);
			if (worker.isAlive()) {
				// Ends a wait for a connection of the pool.
				worker.interrupt();
				worker.join(STOP_MILLIS);
			}
			if (worker.isAlive()) {
				logger.warn("The ticker's last statement has not come back; not waiting for it");
			}
		}
		catch (InterruptedException ex) {
			Thread.currentThread().interrupt();
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

}
