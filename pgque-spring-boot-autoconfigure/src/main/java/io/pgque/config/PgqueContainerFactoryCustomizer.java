package io.pgque.config;

/**
 * Changes the container factory that is used by default. Beans of this type are called in
 * their order before the first container is created.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface PgqueContainerFactoryCustomizer {

	/**
	 * Change the factory.
	 * @param factory the factory
	 */
	void customize(DefaultPgqueListenerContainerFactory factory);

}
