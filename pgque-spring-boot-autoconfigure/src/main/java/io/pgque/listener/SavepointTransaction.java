package io.pgque.listener;

import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;

import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * One transaction for a batch, with a savepoint for each handler.
 *
 * @see SavepointScope
 */
final class SavepointTransaction implements BatchTransaction {

	private final TransactionTemplate template;

	SavepointTransaction(PlatformTransactionManager transactionManager) {
		this.template = new TransactionTemplate(transactionManager);
	}

	@Override
	public @Nullable Received execute(Supplier<@Nullable Received> work) {
		return this.template.execute((status) -> {
			Received received = work.get();
			if (received == null) {
				status.setRollbackOnly();
			}
			return received;
		});
	}

}
