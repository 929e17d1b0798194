package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;

import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueAdminOperations;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.context.ApplicationEventPublisher;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.util.Assert;

/**
 * The container of this library: receives a batch, hands its messages to their handlers,
 * settles all outcomes in one statement and goes on. Its {@link ListenerMode} says
 * whether that happens on one thread, and in one instance of the application, or on
 * several. Handlers run without a database connection and outside of any transaction.
 *
 * @since 0.1.0
 */
public class DefaultPgqueMessageListenerContainer implements PgqueMessageListenerContainer {

	private static final Log logger = LogFactory.getLog(DefaultPgqueMessageListenerContainer.class);

	/**
	 * How long an interrupted handler has to end, and what was done to be settled.
	 */
	private static final Duration LAST_GRACE = Duration.ofSeconds(1);

	private static final Duration JOIN_STEP = Duration.ofMillis(20);

	private final ListenerIdentity identity;

	private final PgqueClient client;

	private final PgqueAdminOperations admin;

	private final PgqueContainerProperties properties;

	private final ConsumerSubscription subscription;

	private final MessageDispatcher dispatcher;

	private final CounterBoard counters = new CounterBoard();

	private final ReentrantLock lifecycle = new ReentrantLock();

	private @Nullable WakeupListener wakeupListener;

	private InstanceHeartbeat heartbeat;

	private @Nullable PlatformTransactionManager transactionManager;

	private @Nullable ApplicationEventPublisher eventPublisher;

	private Set<String> replyQueues = Set.of();

	private boolean autoStartup = true;

	private volatile boolean subscribed;

	private volatile boolean transactionChecked;

	private volatile @Nullable ContainerRun run;

	/**
	 * Its threads may be about to end.
	 */
	private @Nullable ContainerRun lastRun;

	private boolean pauseRequested;

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
		if (properties.isTransactional()) {
			BatchTransactions.check(identity, routes, properties);
		}
		ParallelDispatch.check(identity, routes, properties);
		KeyHolds.check(identity, properties);
		this.properties = new PgqueContainerProperties(properties);
		this.subscription = new ConsumerSubscription(client, identity, this.properties);
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
	 * Set the manager of the transactions in which batches are received, handled and
	 * settled if the properties say so.
	 * @param transactionManager the manager of transactions of the client's data source
	 */
	public void setTransactionManager(@Nullable PlatformTransactionManager transactionManager) {
		this.transactionManager = transactionManager;
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
	 * Set what sends the replies of handlers, and where they go.
	 * @param replySender the sender, {@code null} when handlers don't reply
	 * @param replyQueues the queues that the container makes sure of
	 */
	public void setReplies(@Nullable ReplySender replySender, Set<String> replyQueues) {
		this.dispatcher.setReplySender(replySender);
		this.replyQueues = Set.copyOf(replyQueues);
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
		if (this.properties.isTransactional() && !this.transactionChecked) {
			BatchTransactions.check(this.identity, this.transactionManager, this.client);
			this.transactionChecked = true;
		}
		if (this.subscribed || !this.properties.isSubscribe()) {
			return;
		}
		this.admin.ensureQueue(this.identity.queue());
		this.replyQueues.forEach(this.admin::ensureQueue);
		this.subscription.subscribe();
		this.subscribed = true;
	}

	@Override
	public void start() {
		this.lifecycle.lock();
		try {
			ContainerRun running = this.run;
			if (running != null) {
				Assert.state(!running.isStopping(), () -> "The last handler of " + this.identity + " has not ended");
				return;
			}
			// The queue may have been made anew while the container was stopped.
			this.subscribed = false;
			ContainerRun run = new ContainerRun(parts(), this.pauseRequested, () -> this.run = null);
			this.run = run;
			this.lastRun = run;
			boolean started = false;
			try {
				run.start();
				started = true;
			}
			finally {
				if (!started) {
					this.run = null;
				}
			}
		}
		finally {
			this.lifecycle.unlock();
		}
	}

	private ContainerParts parts() {
		ContainerEvents events = new ContainerEvents(this, this.identity, this.eventPublisher);
		PlatformTransactionManager transactionManager = this.properties.isTransactional() ? this.transactionManager
				: null;
		HandlerScope scope = (transactionManager != null && BatchTransactions.hasSavepoints(transactionManager))
				? new SavepointScope(transactionManager) : HandlerScope.NONE;
		HandlingLog handlings = null;
		if (this.properties.getMaxHandlingTime() != null || this.properties.getIdleEventInterval() != null) {
			handlings = new HandlingLog(scope, events);
			scope = handlings;
		}
		this.dispatcher.setScope(scope);
		return new ContainerParts(this.client, this.identity, this.properties, this.dispatcher, events, this.counters,
				new ContainerHealth(events), this.heartbeat, this.wakeupListener, this::subscribe,
				new ContainerThreads(this.identity, this.properties), transactionManager, handlings);
	}

	/**
	 * Handle on the calling thread what is visible now, in a container that is not
	 * running. For tests, which have nothing to wait for then.
	 * @throws IllegalStateException when the container is running, or shares its consumer
	 * in a way that needs threads
	 */
	public void drain() {
		Assert.state(this.run == null, () -> this + " is running, and handles what there is by itself");
		Assert.state(this.properties.getMode() == ListenerMode.EXCLUSIVE,
				() -> this + " is " + this.properties.getMode() + "; only an exclusive one can be drained");
		new ContainerDrain(parts()).drain();
	}

	@Override
	public void stop() {
		ContainerRun run;
		this.lifecycle.lock();
		try {
			run = this.lastRun;
		}
		finally {
			this.lifecycle.unlock();
		}
		if (run == null) {
			return;
		}
		long begin = run.requestStop();
		if (!isListenerOfEvents(run)) {
			join(run, begin);
		}
	}

	private void join(ContainerRun run, long begin) {
		Duration timeout = this.properties.getShutdownTimeout();
		long limit = timeout.plus(LAST_GRACE).toNanos();
		boolean ended = false;
		try {
			do {
				ended = run.awaitEnd(JOIN_STEP);
				if (!ended && this.dispatcher.isHeldByStoppingHandlers()) {
					// They wait for this stop, or for one that waits for it.
					return;
				}
				if (!ended) {
					run.interruptIfStuck(timeout);
				}
			}
			while (!ended && System.nanoTime() - begin < limit);
		}
		catch (InterruptedException ex) {
			Thread.currentThread().interrupt();
		}
		if (!ended) {
			logger.warn("The thread of " + this.identity + " has not ended within the shutdown timeout of " + timeout
					+ ", even though it was interrupted. What it has not settled comes again");
		}
	}

	/**
	 * Whether the caller is a listener of the container's events, which is called by its
	 * loop and can't wait for the end of that.
	 */
	private boolean isListenerOfEvents(ContainerRun run) {
		return run.isCurrentThread() && !this.dispatcher.isCalledByHandler();
	}

	@Override
	public void stop(Runnable callback) {
		ContainerRun run = this.run;
		if (run != null && isListenerOfEvents(run)) {
			run.requestStop();
			callback.run();
			return;
		}
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
		return this.run != null;
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
		ContainerRun run;
		this.lifecycle.lock();
		try {
			this.pauseRequested = pause;
			run = this.run;
		}
		finally {
			this.lifecycle.unlock();
		}
		if (run != null) {
			run.requestPause(pause);
		}
	}

	@Override
	public boolean isPaused() {
		ContainerRun run = this.run;
		return run != null && run.isPaused();
	}

	@Override
	public boolean isStandby() {
		ContainerRun run = this.run;
		return run != null && run.isStandby();
	}

	@Override
	public boolean isFailing() {
		ContainerRun run = this.run;
		return run != null && run.isFailing();
	}

	@Override
	public String toString() {
		return this.identity.toString();
	}

}
