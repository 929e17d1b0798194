package io.pgque.core;

import java.util.Set;

import javax.sql.DataSource;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.jdbc.datasource.JdbcTransactionObjectSupport;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Is told by transaction managers when transactions begin, and when they are about to
 * commit: after all callbacks, which synchronizations alone don't know. Knows which of
 * the transactions on the thread a connection belongs to, also while one of another
 * manager is in between.
 */
final class TransactionFollower implements TransactionExecutionListener {

	private static final Log logger = LogFactory.getLog(PgqueTemplate.class);

	private final SendTransactions sends;

	private final DataSource dataSource;

	/**
	 * The innermost transaction that owns a connection of the data source.
	 */
	private final ThreadLocal<@Nullable Followed> innermost = new ThreadLocal<>();

	TransactionFollower(SendTransactions sends, DataSource dataSource) {
		this.sends = sends;
		this.dataSource = dataSource;
	}

	/**
	 * Return the transaction of the connection that is bound to the thread.
	 */
	@Nullable Followed current() {
		Followed followed = this.innermost.get();
		if (followed == null) {
			return null;
		}
		Object connection = TransactionSynchronizationManager.getResource(this.dataSource);
		while (followed != null && (followed.connection != connection || followed.transaction.isCompleted())) {
			followed = followed.outer;
		}
		return followed;
	}

	@Override
	public void afterBegin(TransactionExecution transaction, @Nullable Throwable failure) {
		if (failure != null || !transaction.isNewTransaction()
				|| !(transaction instanceof DefaultTransactionStatus status) || !status.isNewSynchronization()) {
			return;
		}
		Followed outer = this.innermost.get();
		while (outer != null && outer.transaction.isCompleted()) {
			// Of the end of some failed ones nobody is told.
			outer = outer.outer;
		}
		Followed current = current();
		if (outer != null && outer.transaction == transaction) {
			return;
		}
		if (current != null) {
			TransactionSynchronizationManager.registerSynchronization(new InBetween(current));
		}
		else if (!transaction.isReadOnly()) {
			Object own = ownConnection(status);
			if (own != null) {
				Followed begun = new Followed(transaction, own, outer);
				TransactionSynchronizationManager.registerSynchronization(begun);
				this.innermost.set(begun);
			}
		}
	}

	/**
	 * Return the connection that is bound to the thread, if it is the transaction's. That
	 * of another manager's transaction is not this one's to commit.
	 */
	private @Nullable Object ownConnection(DefaultTransactionStatus status) {
		Object connection = TransactionSynchronizationManager.getResource(this.dataSource);
		return (status.getTransaction() instanceof JdbcTransactionObjectSupport transaction
				&& transaction.hasConnectionHolder() && transaction.getConnectionHolder() == connection) ? connection
						: null;
	}

	@Override
	public void beforeCommit(TransactionExecution transaction) {
		Followed followed = find(transaction);
		if (followed != null) {
			followed.finish();
		}
	}

	@Override
	public void afterCommit(TransactionExecution transaction, @Nullable Throwable failure) {
		ended(transaction);
	}

	@Override
	public void afterRollback(TransactionExecution transaction, @Nullable Throwable failure) {
		ended(transaction);
	}

	private @Nullable Followed find(TransactionExecution transaction) {
		Followed followed = this.innermost.get();
		while (followed != null && followed.transaction != transaction) {
			followed = followed.outer;
		}
		return followed;
	}

	/**
	 * Those that have begun since have ended too, whether anybody was told or not.
	 */
	private void ended(TransactionExecution transaction) {
		Followed followed = find(transaction);
		if (followed == null) {
			return;
		}
		if (followed.outer != null) {
			this.innermost.set(followed.outer);
		}
		else {
			this.innermost.remove();
		}
	}

	/**
	 * A transaction that was followed from its beginning.
	 */
	final class Followed extends JoinedTransaction {

		private final TransactionExecution transaction;

		private final Object connection;

		private final @Nullable Followed outer;

		private boolean over;

		private Followed(TransactionExecution transaction, Object connection, @Nullable Followed outer) {
			super(TransactionFollower.this.sends);
			this.transaction = transaction;
			this.connection = connection;
			this.outer = outer;
		}

		/**
		 * Return whether nobody is going to commit what is sent now, although the
		 * connection is still there.
		 */
		boolean isOver() {
			return this.over;
		}

		@Override
		public void afterCompletion(int status) {
			this.over = true;
			if (status == STATUS_COMMITTED) {
				Set<String> late = finishLate();
				if (!late.isEmpty()) {
					logger.error("What was sent to " + late + " was written after the commit of its transaction "
							+ "instead of before: somebody has taken the listeners of the transaction manager away "
							+ "meanwhile");
				}
			}
			super.afterCompletion(status);
		}

	}

	/**
	 * Belongs to a transaction of another manager while the connection is one of ours,
	 * whose synchronizations are told nothing meanwhile.
	 */
	private record InBetween(Followed transaction) implements TransactionSynchronization {

		@Override
		public void savepoint(Object savepoint) {
			this.transaction.savepoint(savepoint);
		}

		@Override
		public void savepointRollback(Object savepoint) {
			this.transaction.savepointRollback(savepoint);
		}

		@Override
		public void flush() {
			this.transaction.flush();
		}

	}

}
