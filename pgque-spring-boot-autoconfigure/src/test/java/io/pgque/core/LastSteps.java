package io.pgque.core;

import java.util.function.Consumer;

import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Calls back in each of the last steps of a transaction that commits.
 *
 * @param step is told the step's name
 */
record LastSteps(Consumer<String> step) implements TransactionSynchronization {

	/**
	 * Call back in the transaction at hand.
	 */
	static void register(Consumer<String> step) {
		TransactionSynchronizationManager.registerSynchronization(new LastSteps(step));
	}

	@Override
	public void beforeCommit(boolean readOnly) {
		this.step.accept("before commit");
	}

	@Override
	public void beforeCompletion() {
		this.step.accept("before completion");
	}

	@Override
	public void afterCommit() {
		this.step.accept("after commit");
	}

	@Override
	public void afterCompletion(int status) {
		this.step.accept("after completion");
	}

}
