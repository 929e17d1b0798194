package io.pgque.listener;

import java.util.function.Function;

import org.springframework.transaction.PlatformTransactionManager;

/**
 * What handles the batches of one loop, and what is around each of them.
 *
 * @param transaction what is around a batch
 * @param processor handles it
 */
record BatchWork(BatchTransaction transaction, BatchProcessor processor) {

	/**
	 * Make what a container needs.
	 * @param health is told while batches can't be settled
	 * @param parallel makes handlers run at the same time, where a transaction doesn't
	 * forbid that
	 */
	static BatchWork of(ContainerParts parts, LoopControl control, FailureBackOff.Observer health,
			Function<SequentialDispatch, DispatchStrategy> parallel) {
		SequentialDispatch sequential = new SequentialDispatch(parts.identity(), parts.dispatcher(),
				parts.properties().getAckMode(), control);
		PlatformTransactionManager transactionManager = parts.transactionManager();
		if (transactionManager == null) {
			return of(parts, control, health, BatchTransaction.NONE, parallel.apply(sequential));
		}
		if (BatchTransactions.hasSavepoints(transactionManager)) {
			return of(parts, control, health, new SavepointTransaction(transactionManager), sequential);
		}
		RepeatedTransaction repeated = new RepeatedTransaction(transactionManager, parts.dispatcher(), sequential,
				control);
		return of(parts, control, health, repeated, repeated);
	}

	private static BatchWork of(ContainerParts parts, LoopControl control, FailureBackOff.Observer health,
			BatchTransaction transaction, DispatchStrategy strategy) {
		return new BatchWork(transaction, new BatchProcessor(parts.client(), parts.identity(), parts.properties(),
				strategy, parts.events(), parts.counters(), control, health));
	}

}
