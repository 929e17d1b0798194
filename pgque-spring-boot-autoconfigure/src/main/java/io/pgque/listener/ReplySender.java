package io.pgque.listener;

import java.util.Collection;
import java.util.function.Supplier;

import io.pgque.client.SettleResult;
import io.pgque.core.PgqueOperations;

import org.springframework.transaction.support.TransactionOperations;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.Assert;

/**
 * Sends replies in the transaction that settles what they answer.
 *
 * @since 0.1.0
 */
public final class ReplySender {

	private final PgqueOperations operations;

	private final TransactionOperations transactions;

	/**
	 * Create a sender.
	 * @param operations sends; has to join the transaction
	 * @param transactions makes transactions of the data source that containers settle in
	 */
	public ReplySender(PgqueOperations operations, TransactionOperations transactions) {
		Assert.notNull(operations, "operations must not be null");
		Assert.notNull(transactions, "transactions must not be null");
		this.operations = operations;
		this.transactions = transactions;
	}

	/**
	 * Settle, and send replies if that was done.
	 */
	SettleResult settle(Supplier<SettleResult> settling, Collection<PgqueReply> replies) {
		if (TransactionSynchronizationManager.isActualTransactionActive()) {
			// That of the batch, which may be of another manager.
			return settleAndSend(settling, replies);
		}
		SettleResult result = this.transactions.execute((status) -> settleAndSend(settling, replies));
		Assert.state(result != null, "Settling has no result");
		return result;
	}

	private SettleResult settleAndSend(Supplier<SettleResult> settling, Collection<PgqueReply> replies) {
		SettleResult settled = settling.get();
		if (settled.settled()) {
			replies.forEach(this::send);
		}
		return settled;
	}

	private void send(PgqueReply reply) {
		this.operations.send(reply.queue(),
				(spec) -> spec.payload(reply.payload()).type(reply.type()).key(reply.key()).headers(reply.headers()));
	}

}
