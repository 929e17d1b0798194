package io.pgque.config;

/**
 * Registers endpoints beside those that annotations declare. Beans of this type are
 * called in their order, before any container is made: endpoints of both kinds may share
 * a consumer.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface PgqueListenerConfigurer {

	/**
	 * Register endpoints.
	 * @param registrar takes them
	 */
	void configurePgqueListeners(PgqueListenerEndpointRegistrar registrar);

}
