package io.pgque.config;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;

import io.pgque.QueueNotFoundException;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.PgqueMessageListenerContainer;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.beans.factory.DisposableBean;
import org.springframework.context.SmartLifecycle;

/**
 * Knows all listener containers of the application, starts them last and stops them
 * first, all at the same time. By their ids single ones can be started, stopped, paused
 * and resumed. A handler that stops the registry, say by closing the application, waits
 * for no container whose handlers do the same, its own included: those stop when their
 * handlers have returned.
 *
 * @since 0.1.0
 */
public class PgqueListenerEndpointRegistry implements SmartLifecycle, DisposableBean {

	private static final Log logger = LogFactory.getLog(PgqueListenerEndpointRegistry.class);

	private final ReentrantLock lock = new ReentrantLock();

	private final Map<String, Registered> containers = new LinkedHashMap<>();

	private volatile boolean running;

	/**
	 * Create a registry.
	 */
	public PgqueListenerEndpointRegistry() {
	}

	/**
	 * Create and register the container of a group. It neither subscribes nor starts
	 * before {@link #activate}.
	 * @param group the endpoints of a consumer
	 * @param factory creates the container
	 * @return the container
	 * @throws InvalidListenerException when there is a container for this id, or for this
	 * consumer of the queue
	 */
	public PgqueMessageListenerContainer registerListenerContainer(PgqueListenerGroup group,
			PgqueListenerContainerFactory<?> factory) {
		PgqueMessageListenerContainer container = factory.createContainer(group);
		this.lock.lock();
		try {
			for (Registered other : this.containers.values()) {
				checkDistinct(other, container, group);
			}
			this.containers.put(container.getListenerId(), new Registered(container, group.getDescription()));
		}
		finally {
			this.lock.unlock();
		}
		return container;
	}

	private static void checkDistinct(Registered other, PgqueMessageListenerContainer container,
			PgqueListenerGroup group) {
		PgqueMessageListenerContainer existing = other.container();
		if (existing.getListenerId().equals(container.getListenerId())) {
			throw new InvalidListenerException("Listeners " + other.description() + " and " + group.getDescription()
					+ " have the same id '" + container.getListenerId() + "'", "Give one of them another id");
		}
		if (existing.getQueue().equals(container.getQueue())
				&& existing.getConsumer().equals(container.getConsumer())) {
			throw new InvalidListenerException(
					"Listeners " + other.description() + " and " + group.getDescription()
							+ " have the same queue and consumer, but the container of the former was made before "
							+ "the latter was known",
					"Create the beans of both at start-up, or give one of them another consumer");
		}
	}

	/**
	 * Subscribe the consumer of a registered container; start the container when it
	 * starts by itself and the others have been started already.
	 * @param container the container
	 */
	public void activate(PgqueMessageListenerContainer container) {
		try {
			container.subscribe();
		}
		catch (QueueNotFoundException ex) {
			throw new InvalidListenerException(
					"Listener " + description(container) + " needs queue '" + container.getQueue()
							+ "', which does not exist and is not to be created",
					(ex.getRemedy() != null) ? ex.getRemedy() : "Create the queue, or set pgque.admin.auto-create=true",
					ex);
		}
		if (this.running && container.isAutoStartup()) {
			container.start();
		}
	}

	private String description(PgqueMessageListenerContainer container) {
		Registered registered = registered(container.getListenerId());
		return (registered != null) ? registered.description() : container.getListenerId();
	}

	private @Nullable Registered registered(String id) {
		this.lock.lock();
		try {
			return this.containers.get(id);
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Find a container.
	 * @param id its id
	 * @return the container, or {@code null} when there is none with this id
	 */
	public @Nullable PgqueMessageListenerContainer getListenerContainer(String id) {
		Registered registered = registered(id);
		return (registered != null) ? registered.container() : null;
	}

	/**
	 * Return all containers in the order of their registration.
	 * @return the containers, unmodifiable
	 */
	public Collection<PgqueMessageListenerContainer> getListenerContainers() {
		this.lock.lock();
		try {
			return this.containers.values().stream().map(Registered::container).toList();
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return the ids of all containers in the order of their registration.
	 * @return the ids, a copy
	 */
	public Set<String> getListenerContainerIds() {
		this.lock.lock();
		try {
			return new LinkedHashSet<>(this.containers.keySet());
		}
		finally {
			this.lock.unlock();
		}
	}

	@Override
	public void start() {
		this.running = true;
		for (PgqueMessageListenerContainer container : getListenerContainers()) {
			if (container.isAutoStartup()) {
				start(container);
			}
		}
	}

	private static void start(PgqueMessageListenerContainer container) {
		try {
			container.start();
		}
		catch (RuntimeException ex) {
			// The others needn't suffer for it.
			logger.error("Could not start " + container, ex);
		}
	}

	@Override
	public void stop(Runnable callback) {
		this.running = false;
		List<PgqueMessageListenerContainer> toStop = runningContainers();
		if (toStop.isEmpty()) {
			callback.run();
			return;
		}
		AtomicInteger left = new AtomicInteger(toStop.size());
		toStop.forEach((container) -> container.stop(() -> {
			if (left.decrementAndGet() == 0) {
				callback.run();
			}
		}));
	}

	private List<PgqueMessageListenerContainer> runningContainers() {
		return getListenerContainers().stream().filter(PgqueMessageListenerContainer::isRunning).toList();
	}

	@Override
	public void stop() {
		this.running = false;
		List<PgqueMessageListenerContainer> toStop = runningContainers();
		toStop.forEach((container) -> container.stop(() -> {
		}));
		// Each container has its own limit, which has begun for all of them.
		toStop.forEach(PgqueMessageListenerContainer::stop);
	}

	@Override
	public boolean isRunning() {
		return this.running;
	}

	@Override
	public int getPhase() {
		return PgqueMessageListenerContainer.PHASE;
	}

	/**
	 * Stop what was not stopped by the lifecycle: containers that were started by hand,
	 * or those of a context that failed to start.
	 */
	@Override
	public void destroy() {
		stop();
	}

	private record Registered(PgqueMessageListenerContainer container, String description) {
	}

}
