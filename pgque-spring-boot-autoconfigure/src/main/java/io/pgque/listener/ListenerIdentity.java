package io.pgque.listener;

import io.pgque.core.PgqueNames;

import org.springframework.util.Assert;

/**
 * Who a container is.
 *
 * @param listenerId the id in registry, events and thread names
 * @param queue the queue it reads
 * @param consumer the consumer whose cursor it moves
 * @since 0.1.0
 */
public record ListenerIdentity(String listenerId, String queue, String consumer) {

	/**
	 * Create an identity.
	 * @throws io.pgque.InvalidNameException when queue or consumer can't be a name
	 */
	public ListenerIdentity {
		Assert.hasText(listenerId, "listenerId must not be empty");
		PgqueNames.requireQueue(queue);
		PgqueNames.requireConsumer(consumer);
	}

	/**
	 * Return how log messages name the container.
	 * @return a phrase
	 */
	@Override
	public String toString() {
		return "listener '" + this.listenerId + "' (queue '" + this.queue + "', consumer '" + this.consumer + "')";
	}

}
