package io.pgque.listener;

import io.pgque.client.PgqueClient;
import org.jspecify.annotations.Nullable;

import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * What batches in transactions need, and don't go together with.
 */
final class BatchTransactions {

	private BatchTransactions() {
	}

	/**
	 * Return whether a failed handler can be undone alone. With JPA it can't: the session
	 * would still hold what it did.
	 */
	static boolean hasSavepoints(PlatformTransactionManager transactionManager) {
		return transactionManager instanceof DataSourceTransactionManager;
	}

	/**
	 * Refuse what can't be done in a transaction.
	 * @throws InvalidListenerException when there is something
	 */
	static void check(ListenerIdentity identity, EventRoutes routes, PgqueContainerProperties properties) {
		if (properties.getMode() == ListenerMode.COOPERATIVE) {
			throw refusal(identity, "mode 'cooperative': a batch in a transaction would keep all other workers waiting",
					"Choose mode 'exclusive' or 'partitioned'");
		}
		if (properties.getMode() == ListenerMode.EXCLUSIVE && properties.getConcurrency() > 1) {
			throw refusal(identity,
					"concurrency " + properties.getConcurrency()
							+ " in mode 'exclusive': a transaction is one handler's at a time",
					"Set concurrency to 1, or choose mode 'partitioned'");
		}
		if (routes.hasBatchListener()) {
			throw refusal(identity,
					"a handler of several messages: when it fails, what it did for some of them is undone "
							+ "with the rest",
					"Take one message at a time");
		}
		if (properties.getAckMode() == AckMode.MANUAL) {
			throw refusal(identity, "ackMode 'manual': what a handler did would be committed without its message",
					"Set ackMode to 'batch'");
		}
	}

	/**
	 * Refuse a transaction manager that is of no use.
	 * @throws InvalidListenerException when its transactions are of another data source
	 */
	static void check(ListenerIdentity identity, @Nullable PlatformTransactionManager transactionManager,
			PgqueClient client) {
		if (transactionManager == null) {
			throw new InvalidListenerException("The " + identity
					+ " is transactional, but there is no transaction manager " + "for it, or more than one",
					"Set that of the container factory");
		}
		Boolean joins = new TransactionTemplate(transactionManager).execute((status) -> client.joinsTransaction());
		if (!Boolean.TRUE.equals(joins)) {
			throw new InvalidListenerException(
					"The " + identity + " is transactional, but the transactions of the "
							+ transactionManager.getClass().getSimpleName()
							+ " are not those of the data source with PgQue's queues",
					"Set the transaction manager of that data source at the container factory");
		}
	}

	private static InvalidListenerException refusal(ListenerIdentity identity, String obstacle, String remedy) {
		return new InvalidListenerException(
				"The " + identity + " is transactional, which does not go together with " + obstacle, remedy);
	}

}
