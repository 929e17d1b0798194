package io.pgque.listener;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

import javax.sql.DataSource;

import io.pgque.client.PgqueClient;
import io.pgque.client.SharingClient;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.beans.factory.DisposableBean;
import org.springframework.util.Assert;
import org.springframework.util.StringUtils;

/**
 * Tells the database that this instance of the application is alive: with one short
 * statement every few seconds, however many containers there are, on a thread of its own,
 * so that no slow handler gives the impression of a dead instance. Beats only while a
 * container needs it.
 *
 * @since 0.1.0
 */
public final class InstanceHeartbeat implements DisposableBean {

	private static final Log logger = LogFactory.getLog(InstanceHeartbeat.class);

	/**
	 * So many beats fit into the shortest time after which the instance is taken for
	 * dead.
	 */
	private static final int BEATS_PER_LEASE = 3;

	private static final Duration FIRST_BACK_OFF = Duration.ofMillis(250);

	private final String instance = instanceName();

	private final HeartbeatConnection connection;

	private final List<Pulse> pulses = new CopyOnWriteArrayList<>();

	/**
	 * What is to be given up, and could not be when its container stopped.
	 */
	private final Queue<Consumer<SharingClient>> releases = new ConcurrentLinkedQueue<>();

	private final ReentrantLock lock = new ReentrantLock();

	private final Condition changed = this.lock.newCondition();

	/**
	 * Why the last beat failed, {@code null} when it did not.
	 */
	private volatile @Nullable Throwable failure;

	private @Nullable Thread thread;

	private boolean running;

	private boolean beatWanted;

	private boolean destroyed;

	/**
	 * Create a heartbeat that takes a connection of the application for each beat. It is
	 * as dependable as that is available.
	 * @param client leads to the database
	 */
	public InstanceHeartbeat(PgqueClient client) {
		this(client, null);
	}

	/**
	 * Create a heartbeat on a connection of its own.
	 * @param client leads to the database as well, while the other way fails
	 * @param dataSource opens a new connection each time, whose statements are bounded in
	 * time by a few seconds; must not be a pool. {@code null} when there is none
	 */
	public InstanceHeartbeat(PgqueClient client, @Nullable DataSource dataSource) {
		Assert.notNull(client, "client must not be null");
		this.connection = new HeartbeatConnection(this.instance, client, dataSource);
	}

	/**
	 * For humans its host and process, and what makes it different from all others: a
	 * container's first process always has the same id.
	 */
	private static String instanceName() {
		return hostName() + ":" + ProcessHandle.current().pid() + ":" + UUID.randomUUID().toString().substring(0, 13);
	}

	private static String hostName() {
		String name = System.getenv("HOSTNAME");
		if (StringUtils.hasText(name)) {
			return name;
		}
		try {
			return InetAddress.getLocalHost().getHostName();
		}
		catch (UnknownHostException ex) {
			return "localhost";
		}
	}

	/**
	 * Return the name of this instance, which no other has.
	 * @return the name, as {@code pgque.leases()} shows it
	 */
	public String getInstance() {
		return this.instance;
	}

	/**
	 * Keep this instance alive from now on.
	 * @param lease after how long without a beat others take it for dead
	 * @param revived is run, on the thread of this heartbeat, after the first beat, after
	 * each that came too late, and when beats begin to fail or succeed again; must return
	 * at once
	 * @return ends it, and tells whether others may take the instance for dead
	 */
	Pulse join(Duration lease, Runnable revived) {
		return join(lease, revived, null);
	}

	/**
	 * Keep a member of a cooperative consumer alive from now on, and this instance.
	 * @param lease after how long without a beat others take the member for dead
	 * @param revived as above
	 * @param member tells the database that the member is alive
	 * @return ends it, and tells whether others may take the member for dead
	 */
	Pulse join(Duration lease, Runnable revived, @Nullable Consumer<SharingClient> member) {
		Pulse pulse = new Pulse(lease, revived, member);
		this.lock.lock();
		try {
			Assert.state(!this.destroyed, "The heartbeat has been destroyed");
			this.pulses.add(pulse);
			this.beatWanted = true;
			this.changed.signalAll();
			if (!this.running) {
				this.running = true;
				this.thread = new Thread(this::run, "pgque-heartbeat");
				this.thread.setDaemon(true);
				this.thread.start();
			}
		}
		finally {
			this.lock.unlock();
		}
		return pulse;
	}

	private void leave(Pulse pulse) {
		this.lock.lock();
		try {
			this.pulses.remove(pulse);
			this.changed.signalAll();
		}
		finally {
			this.lock.unlock();
		}
	}

	private void run() {
		FailureBackOff backOff = new FailureBackOff(logger, "The heartbeat of instance " + this.instance,
				FIRST_BACK_OFF, Duration.ofSeconds(2), new Trouble());
		while (!ended()) {
			Duration pause;
			try {
				beat();
				release();
				backOff.succeeded();
				pause = interval();
			}
			catch (Throwable ex) {
				// Even an Error: nobody would start another thread.
				Duration interval = interval();
				pause = backOff.failed(ex);
				pause = (pause.compareTo(interval) < 0) ? pause : interval;
			}
			await(pause);
		}
		this.connection.close();
	}

	/**
	 * Decide under the lock that the thread has nothing left to do, so that no pulse
	 * slips in.
	 */
	private boolean ended() {
		this.lock.lock();
		try {
			this.beatWanted = false;
			if (this.destroyed || this.pulses.isEmpty()) {
				// Nobody keeps what was not given up any more.
				this.releases.clear();
				this.running = false;
				return true;
			}
			return false;
		}
		finally {
			this.lock.unlock();
		}
	}

	private void beat() {
		List<Pulse> beating = this.pulses.stream().filter(Pulse::isDue).toList();
		long begin = System.nanoTime();
		this.connection.send((client) -> client.beat(this.instance));
		long end = System.nanoTime();
		for (Pulse pulse : beating) {
			if (pulse.member == null) {
				pulse.beaten(begin, end);
			}
		}
		for (Pulse pulse : beating) {
			if (pulse.member != null) {
				begin = System.nanoTime();
				this.connection.send(pulse.member);
				pulse.beaten(begin, System.nanoTime());
			}
		}
	}

	private void release() {
		Consumer<SharingClient> release = this.releases.peek();
		while (release != null) {
			this.connection.send(release);
			this.releases.remove();
			release = this.releases.peek();
		}
	}

	private Duration interval() {
		return this.pulses.stream()
			.map((pulse) -> pulse.lease)
			.min(Duration::compareTo)
			.orElse(Duration.ZERO)
			.dividedBy(BEATS_PER_LEASE);
	}

	private void await(Duration time) {
		this.lock.lock();
		try {
			long left = time.toNanos();
			while (left > 0 && !this.beatWanted && !this.destroyed && !this.pulses.isEmpty()) {
				left = this.changed.awaitNanos(left);
			}
		}
		catch (InterruptedException ex) {
			logger.debug("Interrupted while waiting to beat, which is no reason to end", ex);
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
		Thread thread;
		this.lock.lock();
		try {
			this.destroyed = true;
			this.changed.signalAll();
			thread = this.thread;
		}
		finally {
			this.lock.unlock();
		}
		if (thread == null) {
			return;
		}
		try {
			thread.join(TimeUnit.SECONDS.toMillis(1));
		}
		catch (InterruptedException ex) {
			Thread.currentThread().interrupt();
		}
	}

	/**
	 * Has the containers know whether beats fail. They tell of it on their own threads,
	 * for which this one must not wait.
	 */
	private final class Trouble implements FailureBackOff.Observer {

		@Override
		public void failing(Throwable failure) {
			tell(failure);
		}

		@Override
		public void recovered() {
			tell(null);
		}

		private void tell(@Nullable Throwable failure) {
			InstanceHeartbeat.this.failure = failure;
			InstanceHeartbeat.this.pulses.forEach((pulse) -> pulse.revived.run());
		}

	}

	/**
	 * Whether others may take this instance for dead, by one of the times after which
	 * they do.
	 */
	final class Pulse {

		private final Duration lease;

		private final Runnable revived;

		private final @Nullable Consumer<SharingClient> member;

		/**
		 * The moment before the last beat, which the database saw later than that.
		 */
		private volatile long lastBeat;

		private volatile long revivals;

		private Pulse(Duration lease, Runnable revived, @Nullable Consumer<SharingClient> member) {
			this.lease = lease;
			this.revived = revived;
			this.member = member;
		}

		/**
		 * The instance beats for all; a member's own beat costs a statement, and a row.
		 */
		private boolean isDue() {
			return this.member == null || this.revivals == 0
					|| System.nanoTime() - this.lastBeat >= this.lease.dividedBy(BEATS_PER_LEASE + 1).toNanos();
		}

		private void beaten(long begin, long end) {
			boolean revival = this.revivals == 0 || end - this.lastBeat >= this.lease.toNanos();
			this.lastBeat = begin;
			if (revival) {
				revive();
			}
		}

		// Only the thread of the heartbeat gets here.
		@SuppressWarnings("NonAtomicVolatileUpdate")
		private void revive() {
			this.revivals++;
			this.revived.run();
		}

		/**
		 * Return the name of the instance.
		 */
		String instance() {
			return InstanceHeartbeat.this.instance;
		}

		/**
		 * Return whether nobody can take the instance for dead by now.
		 */
		boolean isSafe() {
			return this.revivals > 0 && System.nanoTime() - this.lastBeat < this.lease.toNanos();
		}

		/**
		 * Return why the instance can't tell that it is alive at the moment.
		 * @return the failure, {@code null} when it can
		 */
		@Nullable Throwable failure() {
			return InstanceHeartbeat.this.failure;
		}

		/**
		 * Return how many times the instance might have been taken for dead before it
		 * beat: while the number stays and {@link #isSafe()}, it can't have been.
		 */
		long revivals() {
			return this.revivals;
		}

		/**
		 * Have something given up that can't be at the moment: others could not take it
		 * for as long as this instance beats for other containers.
		 */
		void releaseLater(Consumer<SharingClient> release) {
			InstanceHeartbeat.this.releases.add(release);
		}

		/**
		 * Need no further beats.
		 */
		void close() {
			leave(this);
		}

	}

}
