package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.event.ListenerContainerStoppedEvent.Reason;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.context.ApplicationEventPublisher;
import org.springframework.util.Assert;

/**
 * The container of this library: one thread that receives a batch, hands its messages to
 * their handlers, settles all outcomes in one statement and goes on. Handlers run without
 * a database connection and outside of any transaction.
 *
 * @since 0.1.0
 */
public class DefaultPgqueMessageListenerContainer implements PgqueMessageListenerContainer {

	private static final Log logger = LogFactory.getLog(DefaultPgqueMessageListenerContainer.class);

	/**
	 * How long an interrupted handler has to end, and what was done to be settled.
	 */
	private static final Duration LAST_GRACE = Duration.ofSeconds(1);

	private final ListenerIdentity identity;

	private final PgqueClient client;

	private final PgqueAdminOperations admin;

	private final PgqueContainerProperties properties;

	private final MessageDispatcher dispatcher;

	private final CounterBoard counters = new CounterBoard();

	private final ReentrantLock lifecycle = new ReentrantLock();

	private @Nullable WakeupListener wakeupListener;

	private InstanceHeartbeat heartbeat;

	private @Nullable ApplicationEventPublisher eventPublisher;

	private boolean autoStartup = true;

	private volatile boolean subscribed;

	private volatile boolean paused;

	private volatile @Nullable LoopControl control;

	private volatile @Nullable ConsumerLease lease;

	private boolean pauseRequested;

	private @Nullable Thread thread;

	/**
	 * Create a container.
	 * @param identity who it is
	 * @param client receives and settles; must not join transactions of handlers
	 * @param admin makes sure of the queue and subscribes
	 * @param routes the handlers
	 * @param errorHandler decides about failed messages
	 * @param properties how it works; copied
	 */
	public DefaultPgqueMessageListenerContainer(ListenerIdentity identity, PgqueClient client,
			PgqueAdminOperations admin, EventRoutes routes, PgqueErrorHandler errorHandler,
			PgqueContainerProperties properties) {
		Assert.notNull(identity, "identity must not be null");
		Assert.notNull(client, "client must not be null");
		Assert.notNull(admin, "admin must not be null");
		this.identity = identity;
		this.client = client;
		this.admin = admin;
		this.heartbeat = new InstanceHeartbeat(client);
		this.properties = new PgqueContainerProperties(properties);
		HandlingObserver observer = this.properties.getHandlingObserver();
		this.dispatcher = (observer == HandlingObserver.NONE)
				? new MessageDispatcher(identity, routes, this.properties.getUnknownTypePolicy(), errorHandler)
				: new ObservedDispatcher(identity, routes, this.properties.getUnknownTypePolicy(), errorHandler,
						observer);
	}

	/**
	 * Set what wakes the container when there are new messages.
	 * @param wakeupListener the listener, {@code null} to poll only
	 */
	public void setWakeupListener(@Nullable WakeupListener wakeupListener) {
		this.wakeupListener = wakeupListener;
	}

	/**
	 * Set what tells the other instances that this one is alive. Without it the container
	 * does so itself.
	 * @param heartbeat the heartbeat, usually one for all containers
	 */
	public void setInstanceHeartbeat(InstanceHeartbeat heartbeat) {
		Assert.notNull(heartbeat, "heartbeat must not be null");
		this.heartbeat = heartbeat;
	}

	/**
	 * Set where the container publishes its events.
	 * @param eventPublisher the publisher, {@code null} for nowhere
	 */
	public void setApplicationEventPublisher(@Nullable ApplicationEventPublisher eventPublisher) {
		this.eventPublisher = eventPublisher;
	}

	/**
	 * Set what is called around handlers.
	 * @param messages around handlers of one message, in their order
	 * @param batches around handlers of several messages, in their order
	 */
	public void setInterceptors(List<PgqueMessageInterceptor> messages, List<PgqueBatchInterceptor> batches) {
		this.dispatcher.setInterceptors(new Interceptors(messages, batches));
	}

	/**
	 * Set whether the container starts with the application.
	 * @param autoStartup whether it does
	 */
	public void setAutoStartup(boolean autoStartup) {
		this.autoStartup = autoStartup;
	}

	@Override
	public boolean isAutoStartup() {
		return this.autoStartup;
	}

	@Override
	public String getQueue() {
		return this.identity.queue();
	}

	@Override
	public String getConsumer() {
		return this.identity.consumer();
	}

	@Override
	public String getListenerId() {
		return this.identity.listenerId();
	}

	@Override
	public PgqueContainerProperties getContainerProperties() {
		return new PgqueContainerProperties(this.properties);
	}

	@Override
	public ListenerCounters getCounters() {
		return this.counters.snapshot();
	}

	@Override
	public void subscribe() {
		if (this.subscribed || !this.properties.isSubscribe()) {
			return;
		}
		this.admin.ensureQueue(this.identity.queue());
		if (this.client.subscribe(this.identity.queue(), this.identity.consumer())) {
			logger.info("Subscribed " + this.identity + ": it receives what is sent from now on");
		}
		this.subscribed = true;
	}

	@Override
	public void start() {
		this.lifecycle.lock();
		try {
			LoopControl running = this.control;
			if (running != null) {
				Assert.state(!running.isStopping(), () -> "The last handler of " + this.identity + " has not ended");
				return;
			}
			// The queue may have been made anew while the container was stopped.
			this.subscribed = false;
			LoopControl control = new LoopControl(this.pauseRequested);
			this.control = control;
			this.thread = new Thread(() -> run(control), "pgque-" + this.identity.listenerId());
			this.thread.start();
		}
		finally {
			this.lifecycle.unlock();
		}
	}

	private void run(LoopControl control) {
		ContainerEvents events = new ContainerEvents(this, this.identity, this.eventPublisher);
		Reason reason = Reason.REQUESTED;
		WakeupListener.Registration registration = null;
		try {
			WakeupListener wakeups = this.wakeupListener;
			if (wakeups != null) {
				registration = wakeups.register(this.identity.queue(), (subject) -> wake(control, subject));
			}
			control.bind(Thread.currentThread());
			events.started();
			reason = run(control, events, () -> wakeups != null && wakeups.isListening(this.identity.queue()));
		}
		finally {
			control.bind(null);
			if (registration != null) {
				registration.close();
			}
			this.paused = false;
			this.control = null;
			events.stopped(reason);
		}
	}

	private Reason run(LoopControl control, ContainerEvents events, BooleanSupplier notified) {
		ConsumerLease lease = new ConsumerLease(this.client.sharing(), this.identity, this.properties, events,
				this.heartbeat, () -> wake(control, null));
		this.lease = lease;
		try {
			control.setTurn(lease::isHeld);
			BatchProcessor processor = new BatchProcessor(this.client, this.identity, this.properties,
					new SequentialDispatch(this.identity, this.dispatcher, this.properties.getAckMode(), control),
					events, this.counters, control);
			PollLoop loop = new PollLoop(lease, this.identity, this.properties, processor, this.counters, control,
					this::subscribe, notified);
			return loop.run(new Pauses(events));
		}
		finally {
			this.lease = null;
			control.begin(LoopControl.Activity.RELEASING);
			lease.close();
			control.begin(LoopControl.Activity.IDLE);
		}
	}

	private void wake(LoopControl control, @Nullable String subject) {
		if (subject == null || subject.equals(WakeupListener.Wakeup.LEASE + this.identity.consumer())) {
			control.wakeForTurn();
		}
		if (subject == null || subject.equals(WakeupListener.Wakeup.TICK)) {
			control.wake();
		}
	}

	@Override
	public void stop() {
		LoopControl control;
		Thread thread;
		this.lifecycle.lock();
		try {
			control = this.control;
			thread = this.thread;
		}
		finally {
			this.lifecycle.unlock();
		}
		if (thread == null) {
			return;
		}
		long begin = (control != null) ? control.requestStop() : System.nanoTime();
		if (thread != Thread.currentThread()) {
			join(thread, control, begin);
		}
	}

	private void join(Thread thread, @Nullable LoopControl control, long begin) {
		Duration timeout = this.properties.getShutdownTimeout();
		long limit = timeout.plus(LAST_GRACE).toNanos();
		try {
			while (thread.isAlive() && System.nanoTime() - begin < limit) {
				thread.join(20);
				if (control != null) {
					control.interruptIfStuck(timeout);
				}
			}
		}
		catch (InterruptedException ex) {
			Thread.currentThread().interrupt();
		}
		if (thread.isAlive()) {
			logger.warn("The thread of " + this.identity + " has not ended within the shutdown timeout of " + timeout
					+ ", even though it was interrupted. What it has not settled comes again");
		}
	}

	@Override
	public void stop(Runnable callback) {
		// Many containers stop at the same time, each with its own patience.
		new Thread(() -> {
			try {
				stop();
			}
			finally {
				callback.run();
			}
		}, "pgque-stop-" + this.identity.listenerId()).start();
	}

	@Override
	public boolean isRunning() {
		return this.control != null;
	}

	@Override
	public void pause() {
		requestPause(true);
	}

	@Override
	public void resume() {
		requestPause(false);
	}

	private void requestPause(boolean pause) {
		this.lifecycle.lock();
		try {
			this.pauseRequested = pause;
			LoopControl control = this.control;
			if (control != null) {
				control.requestPause(pause);
			}
		}
		finally {
			this.lifecycle.unlock();
		}
	}

	@Override
	public boolean isPaused() {
		return this.paused;
	}

	@Override
	public boolean isStandby() {
		ConsumerLease lease = this.lease;
		return lease != null && !lease.isHeld();
	}

	@Override
	public String toString() {
		return this.identity.toString();
	}

	/**
	 * Keeps {@link #isPaused()} true.
	 */
	private final class Pauses implements PollLoop.PauseListener {

		private final ContainerEvents events;

		private Pauses(ContainerEvents events) {
			this.events = events;
		}

		@Override
		public void paused() {
			DefaultPgqueMessageListenerContainer.this.paused = true;
			this.events.paused();
		}

		@Override
		public void resumed() {
			DefaultPgqueMessageListenerContainer.this.paused = false;
			this.events.resumed();
		}

	}

}
