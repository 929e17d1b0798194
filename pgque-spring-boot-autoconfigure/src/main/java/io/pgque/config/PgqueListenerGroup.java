package io.pgque.config;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;

import io.pgque.InvalidNameException;
import io.pgque.listener.AckMode;
import io.pgque.listener.EventRoutes;
import io.pgque.listener.EventRoutes.Route;
import io.pgque.listener.GenericPgqueListener;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.ListenerIdentity;
import io.pgque.listener.ListenerMode;
import io.pgque.listener.PgqueContainerProperties;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.adapter.HandlerServices;
import org.jspecify.annotations.Nullable;

import org.springframework.core.ResolvableType;
import org.springframework.util.Assert;

/**
 * The endpoints of one consumer of a queue: what one container is made from.
 *
 * @since 0.1.0
 */
public final class PgqueListenerGroup {

	private final List<PgqueListenerEndpoint> endpoints;

	private final ListenerIdentity identity;

	private final @Nullable Boolean autoStartup;

	private final @Nullable PgqueErrorHandler errorHandler;

	private final @Nullable AckMode ackMode;

	private final @Nullable PgqueContainerCustomizer containerCustomizer;

	private final @Nullable ListenerMode mode;

	private final @Nullable Integer concurrency;

	private final @Nullable Integer partitions;

	private final @Nullable Boolean transactional;

	private PgqueListenerGroup(String consumer, List<PgqueListenerEndpoint> endpoints) {
		this.endpoints = List.copyOf(endpoints);
		PgqueListenerEndpoint first = endpoints.get(0);
		String id = common("id", PgqueListenerEndpoint::getId);
		this.identity = identity((id != null) ? id : first.getQueue() + "." + consumer, first, consumer);
		this.autoStartup = common("autoStartup", PgqueListenerEndpoint::getAutoStartup);
		this.errorHandler = common("errorHandler", PgqueListenerEndpoint::getErrorHandler);
		this.ackMode = common("ackMode", PgqueListenerEndpoint::getAckMode);
		this.containerCustomizer = common("containerCustomizer", PgqueListenerEndpoint::getContainerCustomizer);
		this.mode = common("mode", PgqueListenerEndpoint::getMode);
		this.concurrency = common("concurrency", PgqueListenerEndpoint::getConcurrency);
		this.partitions = common("partitions", PgqueListenerEndpoint::getPartitions);
		this.transactional = common("transactional", PgqueListenerEndpoint::getTransactional);
	}

	/**
	 * Create a group.
	 * @param consumer the consumer name
	 * @param endpoints the endpoints, at least one, all of the same queue
	 * @return the group
	 * @throws InvalidListenerException when a name can't be one, or endpoints disagree
	 * about what belongs to their container
	 */
	public static PgqueListenerGroup of(String consumer, List<PgqueListenerEndpoint> endpoints) {
		Assert.notEmpty(endpoints, "endpoints must not be empty");
		return new PgqueListenerGroup(consumer, endpoints);
	}

	private static ListenerIdentity identity(String id, PgqueListenerEndpoint endpoint, String consumer) {
		try {
			return new ListenerIdentity(id, endpoint.getQueue(), consumer);
		}
		catch (InvalidNameException ex) {
			throw new InvalidListenerException(
					"Listener " + endpoint.getDescription() + " can't have these names: " + ex.getProblem(),
					(ex.getRemedy() != null) ? ex.getRemedy() : "Choose another name", ex);
		}
	}

	private <T> @Nullable T common(String attribute, Function<PgqueListenerEndpoint, @Nullable T> getter) {
		PgqueListenerEndpoint owner = null;
		T value = null;
		for (PgqueListenerEndpoint endpoint : this.endpoints) {
			T candidate = getter.apply(endpoint);
			if (candidate == null) {
				continue;
			}
			if (owner != null && !Objects.equals(value, candidate)) {
				throw new InvalidListenerException(
						"Listeners " + owner.getDescription() + " and " + endpoint.getDescription()
								+ " have the same queue and consumer, hence one container, but disagree about its "
								+ attribute + ": " + value + ", " + candidate,
						"State " + attribute + " once, or let one of them have another consumer");
			}
			owner = endpoint;
			value = candidate;
		}
		return value;
	}

	/**
	 * Return who the container is.
	 * @return its identity
	 */
	public ListenerIdentity getIdentity() {
		return this.identity;
	}

	/**
	 * Return whether the container starts with the application.
	 * @return whether it does, or {@code null} for the default of the container factory
	 */
	public @Nullable Boolean getAutoStartup() {
		return this.autoStartup;
	}

	/**
	 * Return the error handler of the container.
	 * @return the error handler, or {@code null} for that of the container factory
	 */
	public @Nullable PgqueErrorHandler getErrorHandler() {
		return this.errorHandler;
	}

	/**
	 * Return what changes the properties of the container.
	 * @return the customizer, or {@code null} for none
	 */
	public @Nullable PgqueContainerCustomizer getContainerCustomizer() {
		return this.containerCustomizer;
	}

	/**
	 * Return who says that a message is done.
	 * @param defaultMode the mode of the container factory
	 * @return the mode
	 * @throws InvalidListenerException when a handler can't acknowledge but has to, or
	 * only believes that it may
	 */
	public AckMode getAckMode(AckMode defaultMode) {
		AckMode mode = (this.ackMode != null) ? this.ackMode : defaultMode;
		for (PgqueListenerEndpoint endpoint : this.endpoints) {
			if (mode == AckMode.MANUAL && !endpoint.isAcknowledging()) {
				throw new InvalidListenerException(
						"Listener " + endpoint.getDescription()
								+ " has ackMode 'manual', but no parameter through which it could acknowledge",
						"Take an Acknowledgment, or set ackMode to 'batch'");
			}
		}
		return mode;
	}

	/**
	 * Change how the container shares its consumer with other instances, as far as the
	 * endpoints say.
	 * @param properties the properties of the container
	 */
	public void applySharing(PgqueContainerProperties properties) {
		if (this.mode != null) {
			properties.setMode(this.mode);
		}
		if (this.concurrency != null) {
			properties.setConcurrency(this.concurrency);
		}
		if (this.partitions != null) {
			properties.setPartitions(this.partitions);
		}
		if (this.transactional != null) {
			properties.setTransactional(this.transactional);
		}
	}

	/**
	 * Return where handlers send replies.
	 * @return the queues, none when no handler replies
	 */
	public Set<String> getReplyQueues() {
		return this.endpoints.stream()
			.map(PgqueListenerEndpoint::getReplyQueue)
			.filter(Objects::nonNull)
			.map(String::valueOf)
			.collect(Collectors.toUnmodifiableSet());
	}

	/**
	 * Return how messages name the handlers.
	 * @return their descriptions
	 */
	public String getDescription() {
		return this.endpoints.stream().map(PgqueListenerEndpoint::getDescription).collect(Collectors.joining(", "));
	}

	/**
	 * Decide which handler takes which event type.
	 * @param services what handlers need besides messages
	 * @return the routes
	 * @throws InvalidListenerException when two handlers take the same type
	 */
	public EventRoutes createRoutes(HandlerServices services) {
		List<PgqueListenerEndpoint> untyped = this.endpoints.stream()
			.filter((endpoint) -> endpoint.getTypes().isEmpty())
			.toList();
		Map<String, PgqueListenerEndpoint> owners = new HashMap<>();
		List<Route> routes = new ArrayList<>();
		for (PgqueListenerEndpoint endpoint : this.endpoints) {
			Route route = route(endpoint, untyped, services);
			for (String type : route.types()) {
				PgqueListenerEndpoint other = owners.put(type, endpoint);
				if (other != null) {
					throw new InvalidListenerException(
							"Listeners " + other.getDescription() + " and " + endpoint.getDescription()
									+ " have the same queue and consumer, and both take event type '" + type + "'",
							"Give them distinct 'types', or let one of them have another consumer: "
									+ "every consumer receives every message");
				}
			}
			routes.add(route);
		}
		return EventRoutes.of(routes);
	}

	private static Route route(PgqueListenerEndpoint endpoint, List<PgqueListenerEndpoint> untyped,
			HandlerServices services) {
		GenericPgqueListener listener = endpoint.createListener(services);
		if (!endpoint.getTypes().isEmpty()) {
			return new Route(endpoint.getDescription(), Route.Kind.FILTER, endpoint.getTypes(), listener,
					endpoint.getFilter());
		}
		if (untyped.size() == 1) {
			return new Route(endpoint.getDescription(), Route.Kind.REST, Set.of(), listener, endpoint.getFilter());
		}
		Class<?> payloadClass = ResolvableType.forType(endpoint.getPayloadType()).resolve();
		if (payloadClass == null || payloadClass == Object.class) {
			PgqueListenerEndpoint other = (untyped.get(0) != endpoint) ? untyped.get(0) : untyped.get(1);
			throw new InvalidListenerException(
					"Listeners " + other.getDescription() + " and " + endpoint.getDescription()
							+ " have the same queue and consumer and state no 'types', and the latter has no payload "
							+ "class that would tell which events are meant",
					"State 'types', or let one of them have another consumer");
		}
		return new Route(endpoint.getDescription(), Route.Kind.PAYLOAD,
				Set.of(services.eventTypeResolver().resolve(payloadClass)), listener, endpoint.getFilter());
	}

}
