package io.pgque.listener;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

import javax.sql.DataSource;

import io.pgque.core.TickDelegate;
import io.pgque.core.TickListener;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

import org.springframework.beans.factory.DisposableBean;
import org.springframework.util.Assert;

/**
 * Wakes containers when the database notifies that their queue has new messages. One
 * connection and one thread serve the whole application, while at least one container
 * runs.
 *
 * <p>
 * Notifications are a hint only: containers poll beneath, more often while
 * {@link #isListening(String)} is {@code false}. Whenever the connection comes back or is
 * lost they are woken, so that nothing waits for a notification that was missed.
 *
 * @since 0.1.0
 */
public final class WakeupListener implements TickListener, TickDelegate, DisposableBean {

	private static final Log logger = LogFactory.getLog(WakeupListener.class);

	private static final String CHANNEL_PREFIX = "pgque_";

	/**
	 * How long one wait for notifications takes; after it the thread looks for channels
	 * to add.
	 */
	private static final Duration WAIT = Duration.ofSeconds(1);

	/**
	 * How long the connection may be silent before it is asked whether it is alive.
	 */
	private static final Duration CHECK_AFTER = Duration.ofSeconds(4);

	/**
	 * How long any answer of the server may take.
	 */
	private static final Duration ANSWER_WITHIN = Duration.ofSeconds(3);

	/**
	 * How long to wait before a silent connection is tried again.
	 */
	private static final Duration SILENCE = Duration.ofMinutes(1);

	private final DataSource dataSource;

	private final Duration checkAfter;

	private final Duration answerWithin;

	private final Duration wait;

	private final NotificationProbe probe;

	private final ReentrantLock lock = new ReentrantLock();

	private final Condition changed = this.lock.newCondition();

	private final Map<String, List<Wakeup>> wakeups = new ConcurrentHashMap<>();

	private final Set<String> listening = ConcurrentHashMap.newKeySet();

	/**
	 * The newest tick of each queue that containers were woken for: the notification of
	 * one that this instance has taken comes after it.
	 */
	private final Map<String, String> ticks = new ConcurrentHashMap<>();

	private boolean running;

	/**
	 * The current thread, or the last one, which may be about to end.
	 */
	private @Nullable Thread thread;

	private volatile @Nullable Connection connection;

	private volatile boolean destroyed;

	/**
	 * Create a listener. Nothing is opened before the first container registers.
	 * @param dataSource opens a new connection each time; must not be a pool, and must
	 * not lead through a pooler in transaction mode. Until it has opened one, and while
	 * that is tried out, it has to see to it itself that a network which swallows
	 * everything is noticed, by {@code connectTimeout} and {@code socketTimeout} for
	 * instance
	 */
	public WakeupListener(DataSource dataSource) {
		this(dataSource, CHECK_AFTER, ANSWER_WITHIN);
	}

	/**
	 * Create a listener.
	 * @param dataSource as above
	 * @param checkAfter how long the connection may be silent before it is asked whether
	 * it is alive
	 * @param answerWithin how long any answer of the server may take
	 */
	WakeupListener(DataSource dataSource, Duration checkAfter, Duration answerWithin) {
		Assert.notNull(dataSource, "dataSource must not be null");
		this.dataSource = dataSource;
		this.checkAfter = checkAfter;
		this.answerWithin = answerWithin;
		this.wait = (checkAfter.compareTo(WAIT) < 0) ? checkAfter : WAIT;
		this.probe = new NotificationProbe(dataSource, Duration.ofSeconds(2));
	}

	/**
	 * Have something woken when a queue has new messages.
	 * @param queue the queue
	 * @param wakeup is called for it, on the thread of this listener; must return at once
	 * @return ends the registration
	 */
	Registration register(String queue, Wakeup wakeup) {
		this.lock.lock();
		try {
			Assert.state(!this.destroyed, "The wake-up listener has been destroyed");
			this.wakeups.computeIfAbsent(queue, (key) -> new CopyOnWriteArrayList<>()).add(wakeup);
			if (!this.running) {
				this.running = true;
				this.thread = new Thread(this::run, "pgque-wakeup");
				this.thread.setDaemon(true);
				this.thread.start();
			}
		}
		finally {
			this.lock.unlock();
		}
		return () -> unregister(queue, wakeup);
	}

	private void unregister(String queue, Wakeup wakeup) {
		this.lock.lock();
		try {
			this.wakeups.computeIfPresent(queue, (key, registered) -> {
				registered.remove(wakeup);
				return registered.isEmpty() ? null : registered;
			});
			this.changed.signalAll();
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return whether notifications for a queue arrive at the moment, as far as can be
	 * told.
	 * @param queue the queue
	 * @return {@code false} while there is no connection
	 */
	public boolean isListening(String queue) {
		return this.listening.contains(queue);
	}

	private void run() {
		FailureBackOff backOff = new FailureBackOff(logger, "Listening for notifications", Duration.ofMillis(500),
				Duration.ofSeconds(10));
		while (!ended()) {
			boolean silent = false;
			try (Connection connection = this.dataSource.getConnection()) {
				this.connection = connection;
				silent = !listen(connection, backOff);
			}
			catch (Throwable ex) {
				// Even an Error: nobody would start another thread.
				lost();
				if (!this.destroyed) {
					await(backOff.failed(ex));
				}
			}
			finally {
				this.connection = null;
				this.listening.clear();
			}
			if (silent) {
				await(SILENCE);
			}
		}
	}

	/**
	 * Decide under the lock that the thread has nothing left to do, so that no
	 * registration slips in.
	 */
	private boolean ended() {
		this.lock.lock();
		try {
			if (this.destroyed || this.wakeups.isEmpty()) {
				this.running = false;
				return true;
			}
			return false;
		}
		finally {
			this.lock.unlock();
		}
	}

	private boolean isIdle() {
		return this.destroyed || this.wakeups.isEmpty();
	}

	/**
	 * Listen until nobody is interested any more.
	 * @return {@code false} when notifications don't reach the connection
	 */
	private boolean listen(Connection connection, FailureBackOff backOff) throws SQLException {
		connection.setAutoCommit(true);
		connection.setNetworkTimeout(Runnable::run, (int) this.answerWithin.toMillis());
		check(connection);
		if (!this.probe.reaches(connection)) {
			return false;
		}
		PGConnection notifications = connection.unwrap(PGConnection.class);
		long lastSign = System.nanoTime();
		while (!isIdle()) {
			if (adjustChannels(connection)) {
				backOff.succeeded();
			}
			PGNotification[] received = notifications.getNotifications((int) this.wait.toMillis());
			if (received != null && received.length > 0) {
				lastSign = System.nanoTime();
				wake(received);
			}
			else if (System.nanoTime() - lastSign > this.checkAfter.toNanos()) {
				check(connection);
				lastSign = System.nanoTime();
			}
		}
		return true;
	}

	/**
	 * Find out whether the connection is of any use. A server that takes no writes, such
	 * as the old one after a failover, has nothing to notify of.
	 */
	private static void check(Connection connection) throws SQLException {
		try (Statement statement = connection.createStatement();
				ResultSet rows = statement.executeQuery("show transaction_read_only")) {
			if (rows.next() && "on".equals(rows.getString(1))) {
				throw new SQLException("The server that the connection for notifications leads to is read-only");
			}
		}
	}

	/**
	 * Listen to the channels of the registered queues, and to no others.
	 * @return whether a channel was added
	 */
	private boolean adjustChannels(Connection connection) throws SQLException {
		Set<String> added = new HashSet<>(this.wakeups.keySet());
		added.removeAll(this.listening);
		Set<String> gone = new HashSet<>(this.listening);
		gone.removeAll(this.wakeups.keySet());
		if (added.isEmpty() && gone.isEmpty()) {
			return false;
		}
		try (Statement statement = connection.createStatement()) {
			for (String queue : gone) {
				statement.execute("unlisten " + quoted(queue));
				this.listening.remove(queue);
			}
			for (String queue : added) {
				statement.execute("listen " + quoted(queue));
				this.listening.add(queue);
				// for what came before
				wake(queue, null);
			}
		}
		return !added.isEmpty();
	}

	private static String quoted(String queue) {
		return '"' + (CHANNEL_PREFIX + queue).replace("\"", "\"\"") + '"';
	}

	private void wake(PGNotification[] notifications) {
		Map<String, Set<String>> subjects = new LinkedHashMap<>();
		for (PGNotification notification : notifications) {
			if (notification.getName().startsWith(CHANNEL_PREFIX)) {
				String queue = notification.getName().substring(CHANNEL_PREFIX.length());
				String parameter = notification.getParameter();
				boolean tick = !parameter.startsWith(Wakeup.LEASE) && !parameter.startsWith(Wakeup.SLOTS);
				if (!tick || isNews(queue, parameter)) {
					// Of many ticks, one will do.
					subjects.computeIfAbsent(queue, (name) -> new LinkedHashSet<>())
						.add(tick ? Wakeup.TICK : parameter);
				}
			}
		}
		subjects.forEach((queue, all) -> all.forEach((subject) -> wake(queue, subject)));
	}

	@Override
	public void ticked(String queue, long tickId) {
		if (isNews(queue, Long.toString(tickId))) {
			wake(queue, Wakeup.TICK);
		}
	}

	/**
	 * Wake for a tick that one of those to be woken has taken itself.
	 */
	void tickedBy(Wakeup taker, String queue, long tickId) {
		if (isNews(queue, Long.toString(tickId))) {
			registered(queue).forEach((wakeup) -> {
				if (wakeup != taker) {
					wakeup.wake(Wakeup.TICK);
				}
			});
		}
	}

	@Override
	public boolean offerTick(String queue, Runnable handBack) {
		return registered(queue).stream().anyMatch((wakeup) -> wakeup.offerTick(handBack));
	}

	/**
	 * Note a tick.
	 * @param tick its id; empty when somebody notifies by hand
	 * @return whether containers don't know of it yet
	 */
	private boolean isNews(String queue, String tick) {
		return !tick.equals(this.ticks.put(queue, tick)) || tick.isEmpty();
	}

	private void wake(String queue, @Nullable String subject) {
		registered(queue).forEach((wakeup) -> wakeup.wake(subject));
	}

	private List<Wakeup> registered(String queue) {
		return this.wakeups.getOrDefault(queue, List.of());
	}

	/**
	 * The containers have to know at once that they must poll more often.
	 */
	private void lost() {
		this.listening.clear();
		this.ticks.clear();
		this.wakeups.keySet().forEach((queue) -> wake(queue, null));
	}

	private void await(Duration time) {
		this.lock.lock();
		try {
			long left = time.toNanos();
			while (left > 0 && !isIdle()) {
				left = this.changed.awaitNanos(left);
			}
		}
		catch (InterruptedException ex) {
			logger.debug("Interrupted while waiting to reconnect, which is no reason to end", ex);
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * End the thread and close the connection.
	 */
	@Override
	public void destroy() {
		Thread thread = end();
		if (thread == null) {
			return;
		}
		try {
			Connection connection = this.connection;
			if (connection != null) {
				// It waits for notifications and can't be used from here.
				connection.abort(Runnable::run);
			}
			thread.join(TimeUnit.SECONDS.toMillis(1));
		}
		catch (SQLException ex) {
			logger.debug("The connection that listens for notifications could not be aborted", ex);
		}
		catch (InterruptedException ex) {
			Thread.currentThread().interrupt();
		}
	}

	private @Nullable Thread end() {
		this.lock.lock();
		try {
			this.destroyed = true;
			this.changed.signalAll();
			return this.thread;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Is told what was notified about a queue.
	 */
	@FunctionalInterface
	interface Wakeup {

		/**
		 * The subject of ticks.
		 */
		String TICK = "";

		/**
		 * What the subject of a lease that was given up begins with; the consumer
		 * follows.
		 */
		String LEASE = "lease ";

		/**
		 * What the subject begins with when other instances come or go that share slots;
		 * the consumer follows.
		 */
		String SLOTS = "slots ";

		/**
		 * Something was notified.
		 * @param subject what about, {@code null} when anything may have happened
		 */
		void wake(@Nullable String subject);

		/**
		 * Offer a tick of the queue.
		 * @param handBack to be run if it is not taken after all
		 * @return whether it is taken
		 */
		default boolean offerTick(Runnable handBack) {
			return false;
		}

	}

	/**
	 * Ends the registration of a wake-up.
	 */
	@FunctionalInterface
	interface Registration {

		/**
		 * End the registration.
		 */
		void close();

	}

}
