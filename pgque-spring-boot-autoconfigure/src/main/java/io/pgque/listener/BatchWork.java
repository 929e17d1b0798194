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
	 * @param parallel makes handlers run at the same time, where a transaction doesn't
	 * forbid that
	 */
	static BatchWork of(ContainerParts parts, LoopControl control,
			Function<SequentialDispatch, DispatchStrategy> parallel) {
		SequentialDispatch sequential = new SequentialDispatch(parts.identity(), parts.dispatcher(),
				parts.properties().getAckMode(), control);
		PlatformTransactionManager transactionManager = parts.transactionManager();
		if (transactionManager == null) {
			return of(parts, control, BatchTransaction.NONE, parallel.apply(sequential));
		}
		if (BatchTransactions.hasSavepoints(transactionManager)) {
			return of(parts, control, new SavepointTransaction(transactionManager), sequential);
		}
		RepeatedTransaction repeated = new RepeatedTransaction(transactionManager, parts.dispatcher(), sequential,
				control);
		return of(parts, control, repeated, repeated);
	}

	private static BatchWork of(ContainerParts parts, LoopControl control, BatchTransaction transaction,
			DispatchStrategy strategy) {
		return new BatchWork(transaction, new BatchProcessor(parts.client(), parts.identity(), parts.properties(),
				strategy, parts.events(), parts.counters(), control));
	}

}
