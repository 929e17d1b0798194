package io.pgque.listener;

import org.springframework.context.SmartLifecycle;

/**
 * Receives the messages of one consumer of a queue and hands them to handlers, one after
 * the other in the order of their ids.
 *
 * @since 0.1.0
 */
public interface PgqueMessageListenerContainer extends SmartLifecycle {

	/**
	 * The lifecycle phase of containers: they start last and stop first.
	 */
	int PHASE = Integer.MAX_VALUE - 100;

	/**
	 * Make sure that the queue exists and the consumer is subscribed, if that is the
	 * container's task. What is sent afterwards will be received, whenever the container
	 * starts. Called at start-up; a container that starts without does it by itself.
	 * @throws io.pgque.QueueNotFoundException when the queue does not exist and may not
	 * be created
	 */
	void subscribe();

	/**
	 * Take no further message until {@link #resume()}. The handler that is running ends,
	 * and what was handled is settled. No other instance takes over: stop the container
	 * for that. Returns at once.
	 */
	void pause();

	/**
	 * Go on after {@link #pause()}. Returns at once.
	 */
	void resume();

	/**
	 * Return whether the container runs but rests: no handler of it is running.
	 * @return {@code true} from the moment a pause takes effect until the container goes
	 * on or stops
	 */
	boolean isPaused();

	/**
	 * Return whether the container runs but another instance of the application receives
	 * the messages of its consumer.
	 * @return {@code true} until it is this one's turn
	 */
	boolean isStandby();

	/**
	 * Return whether the container runs but can't receive or settle at the moment, as far
	 * as it has tried. It goes on by itself when the database can be reached again.
	 * @return {@code true} from the first failure until receiving works again; always
	 * {@code false} for a container that doesn't know
	 * @since 0.2.0
	 */
	default boolean isFailing() {
		return false;
	}

	/**
	 * Return whether the container's thread is there. It is, while the last handler of a
	 * stopped container has not ended.
	 * @return whether it is running
	 */
	@Override
	boolean isRunning();

	/**
	 * Return the queue.
	 * @return the queue name
	 */
	String getQueue();

	/**
	 * Return the consumer.
	 * @return the consumer name
	 */
	String getConsumer();

	/**
	 * Return the id of the container.
	 * @return the id
	 */
	String getListenerId();

	/**
	 * Return how the container works.
	 * @return a copy of its properties
	 */
	PgqueContainerProperties getContainerProperties();

	/**
	 * Return what the container has done since it was created.
	 * @return the counters, as they are now
	 */
	ListenerCounters getCounters();

	@Override
	default int getPhase() {
		return PHASE;
	}

}
