package io.pgque.config;

import io.pgque.listener.ListenerIdentity;
import io.pgque.listener.PgqueContainerProperties;

/**
 * Changes how one container works, named by {@code containerCustomizer} of its listener.
 *
 * @since 0.1.0
 * @see PgqueContainerFactoryCustomizer
 */
@FunctionalInterface
public interface PgqueContainerCustomizer {

	/**
	 * Change the properties of a container before it is created.
	 * @param identity whose properties they are
	 * @param properties the properties, with the settings of the factory and the listener
	 */
	void customize(ListenerIdentity identity, PgqueContainerProperties properties);

}
