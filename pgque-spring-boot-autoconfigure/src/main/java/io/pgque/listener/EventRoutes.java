package io.pgque.listener;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Which handler of a consumer takes which event type.
 *
 * @since 0.1.0
 */
public final class EventRoutes {

	private final Map<String, Route> byType = new HashMap<>();

	private final @Nullable Route everythingElse;

	private final boolean filter;

	private EventRoutes(List<Route> routes) {
		Route rest = null;
		boolean filter = true;
		for (Route route : routes) {
			if (route.kind() == Route.Kind.REST) {
				Assert.isTrue(rest == null, "Only one handler can take what no other takes");
				rest = route;
			}
			for (String type : route.types()) {
				Route other = this.byType.put(type, route);
				Assert.isTrue(other == null, () -> "Two handlers take event type '" + type + "'");
			}
			filter = filter && route.kind() == Route.Kind.FILTER;
		}
		this.everythingElse = rest;
		this.filter = filter;
	}

	/**
	 * Create routes.
	 * @param routes the routes, of which no two may take the same event type
	 * @return the routes
	 */
	public static EventRoutes of(List<Route> routes) {
		Assert.notEmpty(routes, "routes must not be empty");
		return new EventRoutes(routes);
	}

	/**
	 * Find the handler of an event type.
	 * @param type the event type
	 * @return the handler's route, or {@code null} when none takes the type
	 */
	public @Nullable Route find(@Nullable String type) {
		Route route = this.byType.get(type);
		return (route != null) ? route : this.everythingElse;
	}

	/**
	 * Return whether a handler takes several messages at a time.
	 * @return whether one does
	 */
	public boolean hasBatchListener() {
		return this.everythingElse != null && this.everythingElse.listener() instanceof PgqueBatchListener
				|| this.byType.values().stream().anyMatch((route) -> route.listener() instanceof PgqueBatchListener);
	}

	/**
	 * Return whether types without a handler were left out on purpose: all handlers state
	 * their types explicitly.
	 * @return whether the types are a filter
	 */
	public boolean isFilter() {
		return this.filter;
	}

	/**
	 * The way to one handler.
	 *
	 * @param description what error messages call the handler
	 * @param kind where the types come from
	 * @param types the event types that the handler takes
	 * @param listener the handler
	 * @param filter which messages the handler is to have, {@code null} for all
	 * @since 0.1.0
	 */
	public record Route(String description, Kind kind, Set<String> types, GenericPgqueListener listener,
			@Nullable PgqueMessageFilter filter) {

		/**
		 * Create a route.
		 */
		public Route {
			types = Set.copyOf(types);
			Assert.isTrue(types.isEmpty() == (kind == Kind.REST), "Only the rest goes without types");
		}

		/**
		 * Create a route without a filter.
		 * @param description what error messages call the handler
		 * @param kind where the types come from
		 * @param types the event types that the handler takes
		 * @param listener the handler
		 */
		public Route(String description, Kind kind, Set<String> types, GenericPgqueListener listener) {
			this(description, kind, types, listener, null);
		}

		/**
		 * Where the types of a route come from.
		 */
		public enum Kind {

			/**
			 * The handler states its types; others are none of its consumer's business.
			 */
			FILTER,

			/**
			 * The type is derived from the payload class that the handler takes.
			 */
			PAYLOAD,

			/**
			 * The handler takes what no other takes.
			 */
			REST

		}

	}

}
