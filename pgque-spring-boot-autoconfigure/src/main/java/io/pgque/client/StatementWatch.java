package io.pgque.client;

import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Cancels statements that run for too long. The driver's own limit wakes a thread of its
 * for each statement, which costs more than many a statement of ours; here one thread
 * looks from time to time at those that run, and ends when there have been none for a
 * while.
 */
final class StatementWatch {

	private static final Log logger = LogFactory.getLog(StatementWatch.class);

	/**
	 * So much later than its limit a statement may be cancelled.
	 */
	private static final Duration PERIOD = Duration.ofMillis(250);

	private final Set<Limit> limits = ConcurrentHashMap.newKeySet();

	private final ReentrantLock lock = new ReentrantLock();

	/**
	 * How many looks at nothing the thread takes before it ends.
	 */
	private final int idleLooks;

	private volatile boolean watching;

	StatementWatch(Duration idle) {
		this.idleLooks = (int) Math.max(1, idle.dividedBy(PERIOD));
	}

	/**
	 * Limit how long a statement may run from now on.
	 * @return to be closed when it has ended, and before it is
	 */
	Limit limit(Statement statement, Duration duration) {
		Limit limit = new Limit(statement, System.nanoTime() + duration.toNanos());
		this.limits.add(limit);
		if (!this.watching) {
			try {
				start();
			}
			catch (RuntimeException | Error ex) {
				limit.close();
				throw ex;
			}
		}
		return limit;
	}

	/**
	 * Return whether the thread runs.
	 */
	boolean isWatching() {
		return this.watching;
	}

	private void start() {
		this.lock.lock();
		try {
			if (!this.watching) {
				daemon("pgque-statement-watch", this::watch);
				this.watching = true;
			}
		}
		finally {
			this.lock.unlock();
		}
	}

	private void watch() {
		boolean ended = false;
		try {
			for (int idle = 0; idle < this.idleLooks || !stop();) {
				LockSupport.parkNanos(PERIOD.toNanos());
				// Nobody who interrupts it means anything by that.
				Thread.interrupted();
				idle = look(System.nanoTime()) ? 0 : idle + 1;
			}
			ended = true;
		}
		finally {
			if (!ended) {
				// The next statement starts another.
				this.watching = false;
			}
		}
	}

	/**
	 * Look at what runs.
	 * @return whether anything does
	 */
	private boolean look(long now) {
		boolean running = false;
		for (Limit limit : this.limits) {
			running = true;
			if (limit.isOver(now)) {
				try {
					// Cancelling needs a connection of its own, and waits for it.
					daemon("pgque-statement-cancel", limit::cancel);
					limit.cancelled = true;
				}
				catch (OutOfMemoryError ex) {
					// No thread can be had now; there may be one at the next look.
					logger.warn("A statement could not be cancelled yet", ex);
				}
			}
		}
		return running;
	}

	/**
	 * Have the next statement start the thread, unless one was begun just now.
	 */
	private boolean stop() {
		this.lock.lock();
		try {
			this.watching = false;
			// Who has begun since looks after this whether the thread runs. Asked of the
			// elements: their count may be off while others come and go.
			this.watching = this.limits.iterator().hasNext();
			return !this.watching;
		}
		finally {
			this.lock.unlock();
		}
	}

	private static void daemon(String name, Runnable task) {
		// Without anything of the thread that happens to start it.
		Thread thread = new Thread(null, task, name, 0, false);
		thread.setContextClassLoader(StatementWatch.class.getClassLoader());
		thread.setDaemon(true);
		thread.start();
	}

	/**
	 * The limit of a statement that runs.
	 */
	final class Limit implements AutoCloseable {

		private final Statement statement;

		private final long deadline;

		private final ReentrantLock lock = new ReentrantLock();

		private boolean ended;

		/**
		 * Whether that is under way or done; of the thread that looks.
		 */
		private boolean cancelled;

		private Limit(Statement statement, long deadline) {
			this.statement = statement;
			this.deadline = deadline;
		}

		private boolean isOver(long now) {
			return !this.cancelled && now - this.deadline >= 0;
		}

		/**
		 * Cancel the statement, unless it has ended.
		 */
		void cancel() {
			this.lock.lock();
			try {
				if (!this.ended) {
					this.statement.cancel();
				}
			}
			catch (SQLException ex) {
				// The connection is as dead as the statement, and its own limit comes.
				logger.debug("A statement could not be cancelled", ex);
			}
			finally {
				this.lock.unlock();
			}
		}

		/**
		 * The statement has ended: whatever runs on its connection next is not cancelled.
		 */
		@Override
		public void close() {
			StatementWatch.this.limits.remove(this);
			this.lock.lock();
			try {
				this.ended = true;
			}
			finally {
				this.lock.unlock();
			}
		}

	}

}
