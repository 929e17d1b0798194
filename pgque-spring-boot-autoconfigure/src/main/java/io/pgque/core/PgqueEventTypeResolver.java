package io.pgque.core;

import org.jspecify.annotations.Nullable;

/**
 * Finds the event type of a payload, or of a payload class that a listener takes.
 *
 * @since 0.1.0
 */
public interface PgqueEventTypeResolver {

	/**
	 * The event type of payloads that have no class of their own.
	 */
	String DEFAULT_TYPE = "default";

	/**
	 * Return the event type for a payload class.
	 * @param payloadClass the class, {@code null} when there is no payload
	 * @return the event type
	 */
	String resolve(@Nullable Class<?> payloadClass);

}
