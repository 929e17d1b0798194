package io.pgque.listener;

import io.pgque.client.PgqueClient;
import org.jspecify.annotations.Nullable;

import org.springframework.transaction.PlatformTransactionManager;

/**
 * What the loops of a container work with.
 *
 * @param client receives and settles
 * @param identity who the container is
 * @param properties how it works
 * @param dispatcher brings messages to their handlers
 * @param events publishes
 * @param counters counts
 * @param health knows whether it fails
 * @param heartbeat keeps what is held
 * @param wakeups wakes the loops, {@code null} to poll only
 * @param subscription makes sure that the consumer is subscribed
 * @param threads makes its threads
 * @param handlings which handlers are running, {@code null} when nobody wants to know
 * @param transactionManager of the transactions of batches, {@code null} for none
 */
record ContainerParts(PgqueClient client, ListenerIdentity identity, PgqueContainerProperties properties,
		MessageDispatcher dispatcher, ContainerEvents events, CounterBoard counters, ContainerHealth health,
		InstanceHeartbeat heartbeat, @Nullable WakeupListener wakeups, Runnable subscription, ContainerThreads threads,
		@Nullable PlatformTransactionManager transactionManager, @Nullable HandlingLog handlings) {

	/**
	 * Return whether wake-ups can be relied on at the moment.
	 */
	boolean isNotified() {
		return this.wakeups != null && this.wakeups.isListening(this.identity.queue());
	}

}
