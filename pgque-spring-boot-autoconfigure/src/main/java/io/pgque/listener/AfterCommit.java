package io.pgque.listener;

import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Puts off what must not be told before it is certain.
 */
final class AfterCommit {

	private AfterCommit() {
	}

	/**
	 * Run an action when the transaction of the batch has committed, and never if it
	 * doesn't; at once where there is none.
	 * @param action the action
	 */
	static void run(Runnable action) {
		if (!TransactionSynchronizationManager.isSynchronizationActive()
				|| !TransactionSynchronizationManager.isActualTransactionActive()) {
			action.run();
			return;
		}
		TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {

			@Override
			public void afterCommit() {
				action.run();
			}

		});
	}

}
