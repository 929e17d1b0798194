package io.pgque.config;

/**
 * Names of the beans that the listener infrastructure consists of.
 *
 * @since 0.1.0
 */
public final class PgqueListenerBeanNames {

	/**
	 * The bean post-processor that looks for listener methods.
	 */
	public static final String ANNOTATION_PROCESSOR = "io.pgque.config.internalPgqueListenerAnnotationProcessor";

	/**
	 * The registry of containers.
	 */
	public static final String ENDPOINT_REGISTRY = "pgqueListenerEndpointRegistry";

	/**
	 * The container factory of listeners that name none.
	 */
	public static final String DEFAULT_CONTAINER_FACTORY = "pgqueListenerContainerFactory";

	private PgqueListenerBeanNames() {
	}

}
