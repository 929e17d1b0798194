package io.pgque.config;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.PgqueMessageListenerContainer;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Collects endpoints and, once all are known, groups them by queue and consumer and
 * registers a container for each group.
 *
 * @since 0.1.0
 */
public class PgqueListenerEndpointRegistrar {

	private final PgqueListenerEndpointRegistry registry;

	private final List<Entry> entries = new ArrayList<>();

	private @Nullable Supplier<PgqueListenerContainerFactory<?>> defaultFactory;

	/**
	 * Create a registrar.
	 * @param registry where containers are registered
	 */
	public PgqueListenerEndpointRegistrar(PgqueListenerEndpointRegistry registry) {
		Assert.notNull(registry, "registry must not be null");
		this.registry = registry;
	}

	/**
	 * Set what gives the factory of endpoints that are registered without one.
	 * @param defaultFactory gives the factory
	 */
	public void setDefaultContainerFactory(Supplier<PgqueListenerContainerFactory<?>> defaultFactory) {
		this.defaultFactory = defaultFactory;
	}

	/**
	 * Add an endpoint whose container the default factory creates.
	 * @param endpoint the endpoint
	 */
	public void registerEndpoint(PgqueListenerEndpoint endpoint) {
		Assert.state(this.defaultFactory != null, "There is no default container factory; name one");
		registerEndpoint(endpoint, this.defaultFactory.get());
	}

	/**
	 * Add an endpoint to those that {@link #registerContainers()} is about.
	 * @param endpoint the endpoint
	 * @param factory creates its container
	 */
	public void registerEndpoint(PgqueListenerEndpoint endpoint, PgqueListenerContainerFactory<?> factory) {
		Assert.notNull(endpoint, "endpoint must not be null");
		Assert.notNull(factory, "factory must not be null");
		this.entries.add(new Entry(endpoint, factory));
	}

	/**
	 * Register the containers of all endpoints that were added since the last time, and
	 * subscribe their consumers.
	 * @throws InvalidListenerException when an endpoint has no consumer, or endpoints
	 * contradict each other
	 */
	public void registerContainers() {
		Map<Key, List<Entry>> groups = new LinkedHashMap<>();
		for (Entry entry : this.entries) {
			groups.computeIfAbsent(new Key(entry.endpoint().getQueue(), consumer(entry)), (key) -> new ArrayList<>())
				.add(entry);
		}
		this.entries.clear();
		List<PgqueMessageListenerContainer> containers = new ArrayList<>();
		// First all contradictions, then the database.
		groups.forEach((key, entries) -> containers.add(register(key, entries)));
		containers.forEach(this.registry::activate);
	}

	private PgqueMessageListenerContainer register(Key key, List<Entry> entries) {
		PgqueListenerGroup group = PgqueListenerGroup.of(key.consumer(),
				entries.stream().map(Entry::endpoint).toList());
		return this.registry.registerListenerContainer(group, factory(entries));
	}

	private static PgqueListenerContainerFactory<?> factory(List<Entry> entries) {
		Entry first = entries.get(0);
		for (Entry entry : entries) {
			if (entry.factory() != first.factory()) {
				throw new InvalidListenerException(
						"Listeners " + first.endpoint().getDescription() + " and " + entry.endpoint().getDescription()
								+ " have the same queue and consumer, hence one container, but disagree about its "
								+ "containerFactory",
						"Let both name the same factory, or let one of them have another consumer");
			}
		}
		return first.factory();
	}

	private static String consumer(Entry entry) {
		PgqueListenerEndpoint endpoint = entry.endpoint();
		String consumer = firstWithText(endpoint.getConsumer(), endpoint.getId(), entry.factory().getDefaultConsumer());
		if (consumer == null) {
			throw new InvalidListenerException(
					"Listener " + endpoint.getDescription() + " on queue '" + endpoint.getQueue()
							+ "' has no consumer name",
					"Set 'consumer' of @PgqueListener, the property pgque.listener.consumer, "
							+ "or spring.application.name");
		}
		return consumer;
	}

	private static @Nullable String firstWithText(@Nullable String... candidates) {
		for (String candidate : candidates) {
			if (candidate != null && !candidate.isBlank()) {
				return candidate;
			}
		}
		return null;
	}

	private record Entry(PgqueListenerEndpoint endpoint, PgqueListenerContainerFactory<?> factory) {
	}

	private record Key(String queue, String consumer) {
	}

}
