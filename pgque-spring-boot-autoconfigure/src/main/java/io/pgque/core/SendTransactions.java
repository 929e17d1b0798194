package io.pgque.core;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Supplier;

import javax.sql.DataSource;

import io.pgque.ReadOnlyTransactionException;
import io.pgque.TransactionRequiredException;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.jdbc.CannotGetJdbcConnectionException;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Decides which transaction a send belongs to, and tells the {@link CommitListener} when
 * that transaction has committed.
 *
 * <p>
 * Sends in the callbacks after a commit are peculiar: Spring still shows the transaction
 * that is over, on a connection with auto-commit off, and nothing commits what is written
 * there but chance. So they are committed here.
 */
final class SendTransactions {

	private static final Set<String> END_OF_TRANSACTION = Set.of("processCommit", "processRollback");

	private static final StackWalker STACK = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);

	private static final Log logger = LogFactory.getLog(PgqueTemplate.class);

	private final DataSource dataSource;

	private final BiConsumer<String, List<OutgoingEvent>> writer;

	private final AtomicBoolean warned = new AtomicBoolean();

	/**
	 * Key under which a foreign transaction is noted.
	 */
	private final Object foreignTransaction = new Object();

	private volatile boolean transactionRequired;

	private volatile CommitListener commitListener = (queues) -> {
	};

	/**
	 * Creates an instance.
	 * @param dataSource leads to the database
	 * @param writer writes what was collected for a queue
	 */
	SendTransactions(DataSource dataSource, BiConsumer<String, List<OutgoingEvent>> writer) {
		this.dataSource = target(dataSource);
		this.writer = writer;
	}

	private static DataSource target(DataSource dataSource) {
		DataSource target = (dataSource instanceof TransactionAwareDataSourceProxy proxy) ? proxy.getTargetDataSource()
				: null;
		return (target != null) ? target : dataSource;
	}

	void setTransactionRequired(boolean transactionRequired) {
		this.transactionRequired = transactionRequired;
	}

	void setCommitListener(CommitListener commitListener) {
		this.commitListener = commitListener;
	}

	/**
	 * Write now, after what was collected for the queue.
	 */
	<T> T send(String queue, Supplier<T> statement) {
		return inTransaction(queue, (current) -> {
			current.writePending(queue);
			return statement.get();
		}, statement);
	}

	/**
	 * Collect a message until the transaction is about to commit; write it now where
	 * there is no transaction, or it is too late for that.
	 */
	void sendLater(OutgoingEvent event) {
		inTransaction(event.queue(), (current) -> {
			if (!current.collect(event)) {
				current.writePending(event.queue());
				this.writer.accept(event.queue(), List.of(event));
			}
			return Boolean.TRUE;
		}, () -> {
			this.writer.accept(event.queue(), List.of(event));
			return Boolean.TRUE;
		});
	}

	/**
	 * Send in the way that the transaction at hand asks for.
	 * @param joined what to do inside a transaction that somebody is going to commit
	 * @param alone what to do otherwise
	 */
	private <T> T inTransaction(String queue, Function<Synchronization, T> joined, Supplier<T> alone) {
		if (!TransactionSynchronizationManager.isSynchronizationActive()
				&& !TransactionSynchronizationManager.hasResource(this.dataSource)) {
			requireNoTransaction(queue);
			T result = alone.get();
			this.commitListener.committed(Set.of(queue));
			return result;
		}
		boolean foreign = isForeignTransaction();
		// Bound to the thread, hence the same that the statement will use.
		Connection connection = DataSourceUtils.getConnection(this.dataSource);
		try {
			return send(queue, joined, alone, connection, foreign);
		}
		catch (SQLException ex) {
			throw new CannotGetJdbcConnectionException("The connection to send to queue '" + queue + "' failed", ex);
		}
		finally {
			DataSourceUtils.releaseConnection(connection, this.dataSource);
		}
	}

	/**
	 * Whether the transaction is one of another data source: its manager had bound no
	 * connection of ours before the first send, so nothing will commit what is written
	 * there.
	 */
	private boolean isForeignTransaction() {
		if (!TransactionSynchronizationManager.isActualTransactionActive()
				|| !TransactionSynchronizationManager.isSynchronizationActive()) {
			return false;
		}
		if (TransactionSynchronizationManager.hasResource(this.foreignTransaction)) {
			return true;
		}
		if (TransactionSynchronizationManager.hasResource(this.dataSource)) {
			return false;
		}
		TransactionSynchronizationManager.registerSynchronization(new ForeignTransaction());
		TransactionSynchronizationManager.bindResource(this.foreignTransaction, Boolean.TRUE);
		return true;
	}

	private <T> T send(String queue, Function<Synchronization, T> joined, Supplier<T> alone, Connection connection,
			boolean foreign) throws SQLException {
		boolean active = TransactionSynchronizationManager.isActualTransactionActive();
		boolean synchronizing = TransactionSynchronizationManager.isSynchronizationActive();
		boolean autoCommit = connection.getAutoCommit();
		if (autoCommit || foreign || (synchronizing && !active)) {
			requireNoTransaction(queue);
			if (active) {
				warnOfOtherTransaction(queue);
			}
		}
		else if ((active && TransactionSynchronizationManager.isCurrentTransactionReadOnly())
				|| connection.isReadOnly()) {
			throw new ReadOnlyTransactionException(queue,
					"Nothing can be sent to queue '" + queue + "' inside a read-only transaction",
					"Send in a read-write transaction, such as a method with @Transactional without readOnly, or with "
							+ "propagation REQUIRES_NEW",
					null);
		}
		if (!autoCommit && !foreign && active && synchronizing) {
			Synchronization current = current();
			T result = joined.apply(current);
			current.sent(queue);
			return result;
		}
		T result = alone.get();
		if (autoCommit) {
			this.commitListener.committed(Set.of(queue));
		}
		else if (foreign) {
			connection.commit();
			this.commitListener.committed(Set.of(queue));
		}
		else if (active || synchronizing) {
			// After completion of a transaction, or in a scope without one.
			connection.commit();
			this.commitListener.committed(Set.of(queue));
		}
		return result;
	}

	private void requireNoTransaction(String queue) {
		if (this.transactionRequired) {
			throw new TransactionRequiredException(queue,
					"Queue '" + queue + "' is sent to outside a transaction of PgQue's data source, and "
							+ "pgque.template.require-transaction is set",
					"Call it from a @Transactional method", null);
		}
	}

	private void warnOfOtherTransaction(String queue) {
		if (this.warned.compareAndSet(false, true)) {
			logger.warn("The transaction in which queue '" + queue + "' was sent to is not one of PgQue's data source: "
					+ "the message was committed by itself. Use a transaction manager for the same data source "
					+ "(this is said once)");
		}
	}

	/**
	 * Return what follows transactions when it is registered with their manager.
	 */
	TransactionExecutionListener follower() {
		return new Follower();
	}

	private @Nullable Synchronization joined() {
		return (Synchronization) TransactionSynchronizationManager.getResource(this);
	}

	private Synchronization current() {
		Synchronization current = joined();
		return (current != null) ? current : join(false);
	}

	private Synchronization join(boolean followed) {
		Synchronization joined = new Synchronization(followed);
		TransactionSynchronizationManager.registerSynchronization(joined);
		TransactionSynchronizationManager.bindResource(this, joined);
		return joined;
	}

	/**
	 * Is told by a transaction manager when transactions begin, and when they are about
	 * to commit: after all callbacks, which synchronizations alone don't know.
	 */
	private final class Follower implements TransactionExecutionListener {

		@Override
		public void afterBegin(TransactionExecution transaction, @Nullable Throwable failure) {
			if (failure == null && isOwnScope(transaction) && !transaction.isReadOnly()
					&& TransactionSynchronizationManager.hasResource(SendTransactions.this.dataSource)
					&& joined() == null) {
				join(true);
			}
		}

		@Override
		public void beforeCommit(TransactionExecution transaction) {
			Synchronization joined = joined();
			if (joined != null && joined.followed && isOwnScope(transaction)) {
				joined.finish();
			}
		}

		/**
		 * Whether the synchronizations that are registered now are those of the
		 * transaction, and no others'.
		 */
		private static boolean isOwnScope(TransactionExecution transaction) {
			return transaction.isNewTransaction() && transaction instanceof DefaultTransactionStatus status
					&& status.isNewSynchronization();
		}

	}

	/**
	 * Forgets a foreign transaction when it ends, or when another takes its place.
	 */
	private final class ForeignTransaction implements TransactionSynchronization {

		@Override
		public void suspend() {
			TransactionSynchronizationManager.unbindResource(SendTransactions.this.foreignTransaction);
		}

		@Override
		public void resume() {
			TransactionSynchronizationManager.bindResource(SendTransactions.this.foreignTransaction, Boolean.TRUE);
		}

		@Override
		public void afterCompletion(int status) {
			TransactionSynchronizationManager.unbindResourceIfPossible(SendTransactions.this.foreignTransaction);
		}

	}

	/**
	 * Whether the transaction, which nobody has followed, is in its last steps. Spring
	 * tells synchronizations that are registered now nothing of what is left of them, and
	 * there is no other way to know.
	 */
	private static boolean isEnding() {
		// The name of a method costs much more than its class.
		return STACK.walk((frames) -> frames
			.anyMatch((frame) -> frame.getDeclaringClass() == AbstractPlatformTransactionManager.class
					&& END_OF_TRANSACTION.contains(frame.getMethodName())));
	}

	/**
	 * Follows a transaction: writes what was collected before it commits and after all
	 * callbacks that may still send, and tells what it sent to once it has committed.
	 */
	private final class Synchronization implements TransactionSynchronization {

		/**
		 * Where something was sent to, and nobody was told yet.
		 */
		private final Set<String> queues = new LinkedHashSet<>();

		private @Nullable PendingSends pending;

		/**
		 * Whether the {@link Follower} says when the transaction is about to commit.
		 */
		private final boolean followed;

		/**
		 * Whether it is known that {@link #beforeCommit} is still to come, or not.
		 */
		private boolean located;

		/**
		 * Whether it is too late to collect.
		 */
		private boolean over;

		/**
		 * Whether all that was sent is part of the transaction, and not of what comes
		 * after its commit.
		 */
		private boolean complete;

		Synchronization(boolean followed) {
			this.followed = followed;
			this.located = followed;
		}

		/**
		 * Collect a message, if something is going to write it.
		 */
		boolean collect(OutgoingEvent event) {
			if (!this.located) {
				this.located = true;
				this.over = this.over || isEnding();
			}
			if (this.over) {
				return false;
			}
			PendingSends pending = this.pending;
			if (pending == null) {
				pending = new PendingSends(SendTransactions.this.writer);
				this.pending = pending;
			}
			pending.add(event);
			return true;
		}

		void writePending(String queue) {
			if (this.pending != null) {
				this.pending.write(queue);
			}
		}

		private void writePending() {
			if (this.pending != null) {
				this.pending.writeAll();
			}
		}

		void sent(String queue) {
			this.queues.add(queue);
			this.complete = false;
		}

		@Override
		public int getOrder() {
			return LOWEST_PRECEDENCE;
		}

		@Override
		public void suspend() {
			TransactionSynchronizationManager.unbindResource(SendTransactions.this);
		}

		@Override
		public void resume() {
			TransactionSynchronizationManager.bindResource(SendTransactions.this, this);
		}

		@Override
		public void savepoint(Object savepoint) {
			if (this.pending != null) {
				this.pending.savepoint(savepoint);
			}
		}

		@Override
		public void savepointRollback(Object savepoint) {
			if (this.pending != null) {
				this.pending.rollbackTo(savepoint);
			}
		}

		@Override
		public void flush() {
			writePending();
		}

		@Override
		public void beforeCommit(boolean readOnly) {
			if (!this.followed) {
				finish();
			}
		}

		/**
		 * Nothing but the commit is certain to come any more.
		 */
		private void finish() {
			this.over = true;
			writePending();
			this.complete = true;
			if (!this.queues.isEmpty() && TransactionSynchronizationManager.getSynchronizations().size() > 1) {
				TransactionSynchronizationManager.registerSynchronization(new Telling(this));
			}
		}

		@Override
		public void afterCommit() {
			tell();
		}

		@Override
		public void afterCompletion(int status) {
			TransactionSynchronizationManager.unbindResourceIfPossible(SendTransactions.this);
			if (status == STATUS_COMMITTED) {
				tell();
			}
			else if (status == STATUS_UNKNOWN) {
				SendTransactions.this.tell(this.queues);
			}
		}

		/**
		 * Tell of what has been committed, once what was sent since the commit is, too.
		 */
		private void tell() {
			if (!this.queues.isEmpty() && !this.complete) {
				commitLate();
			}
			SendTransactions.this.tell(this.queues);
		}

		private void commitLate() {
			Connection connection = DataSourceUtils.getConnection(SendTransactions.this.dataSource);
			try {
				if (!connection.getAutoCommit()) {
					connection.commit();
				}
			}
			catch (SQLException ex) {
				logger.error("What was sent to " + this.queues + " after a commit could not be committed", ex);
			}
			finally {
				DataSourceUtils.releaseConnection(connection, SendTransactions.this.dataSource);
			}
		}

	}

	private void tell(Set<String> queues) {
		if (!queues.isEmpty()) {
			Set<String> told = Set.copyOf(queues);
			queues.clear();
			this.commitListener.committed(told);
		}
	}

	/**
	 * Has a commit told before other callbacks, which may take their time.
	 */
	private record Telling(Synchronization transaction) implements TransactionSynchronization {

		@Override
		public int getOrder() {
			return HIGHEST_PRECEDENCE;
		}

		@Override
		public void afterCommit() {
			this.transaction.afterCommit();
		}

	}

}
