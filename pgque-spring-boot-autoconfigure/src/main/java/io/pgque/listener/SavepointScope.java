package io.pgque.listener;

import java.util.concurrent.atomic.AtomicReference;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * A savepoint around each handler: what a handler did before it failed is undone, what
 * others did stays.
 */
final class SavepointScope implements HandlerScope {

	private final TransactionTemplate nested;

	SavepointScope(PlatformTransactionManager transactionManager) {
		this.nested = new TransactionTemplate(transactionManager);
		this.nested.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
	}

	@Override
	public void run(PgqueMessage message, Call handler) throws Exception {
		AtomicReference<@Nullable Exception> failure = new AtomicReference<>();
		this.nested.executeWithoutResult((status) -> {
			Exception thrown = call(handler);
			if (thrown != null) {
				failure.set(thrown);
				status.setRollbackOnly();
			}
		});
		Exception thrown = failure.get();
		if (thrown != null) {
			throw thrown;
		}
	}

	/**
	 * An Error goes through the template, which undoes as well.
	 */
	private static @Nullable Exception call(Call handler) {
		try {
			handler.run();
			return null;
		}
		catch (Exception ex) {
			return ex;
		}
	}

}
