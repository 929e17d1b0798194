package io.pgque.core;

import java.util.Set;

/**
 * Told once after each transaction that sent something has committed, or after each send
 * outside a transaction.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface CommitListener {

	/**
	 * Called on the thread that committed, so it must be quick and must not throw.
	 * @param queues the names of the queues that something was sent to
	 */
	void committed(Set<String> queues);

}
