package io.pgque.config;

import io.pgque.listener.PgqueMessageListenerContainer;
import org.jspecify.annotations.Nullable;

/**
 * Creates listener containers.
 *
 * @param <C> the type of the containers
 * @since 0.1.0
 */
public interface PgqueListenerContainerFactory<C extends PgqueMessageListenerContainer> {

	/**
	 * Create the container of a consumer.
	 * @param group its handlers
	 * @return the container, not started
	 * @throws io.pgque.listener.InvalidListenerException when the handlers contradict
	 * each other
	 */
	C createContainer(PgqueListenerGroup group);

	/**
	 * Return the consumer of listeners that name none.
	 * @return the consumer name, or {@code null} when every listener has to name its own
	 */
	@Nullable String getDefaultConsumer();

}
