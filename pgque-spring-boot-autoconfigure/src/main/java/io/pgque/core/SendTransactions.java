package io.pgque.core;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
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

	private static final Log logger = LogFactory.getLog(PgqueTemplate.class);

	private final DataSource dataSource;

	private final AtomicBoolean warned = new AtomicBoolean();

	/**
	 * Key under which a foreign transaction is noted.
	 */
	private final Object foreignTransaction = new Object();

	private volatile boolean transactionRequired;

	private volatile CommitListener commitListener = (queues) -> {
	};

	SendTransactions(DataSource dataSource) {
		this.dataSource = target(dataSource);
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

	<T> T send(String queue, Supplier<T> statement) {
		if (!TransactionSynchronizationManager.isSynchronizationActive()
				&& !TransactionSynchronizationManager.hasResource(this.dataSource)) {
			requireNoTransaction(queue);
			T result = statement.get();
			this.commitListener.committed(Set.of(queue));
			return result;
		}
		boolean foreign = isForeignTransaction();
		// Bound to the thread, hence the same that the statement will use.
		Connection connection = DataSourceUtils.getConnection(this.dataSource);
		try {
			return send(queue, statement, connection, foreign);
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

	private <T> T send(String queue, Supplier<T> statement, Connection connection, boolean foreign)
			throws SQLException {
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
		T result = statement.get();
		if (autoCommit) {
			this.commitListener.committed(Set.of(queue));
		}
		else if (foreign) {
			connection.commit();
			this.commitListener.committed(Set.of(queue));
		}
		else if (active && synchronizing) {
			current().queues.add(queue);
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

	private Synchronization current() {
		Synchronization current = (Synchronization) TransactionSynchronizationManager.getResource(this);
		if (current == null) {
			current = new Synchronization();
			TransactionSynchronizationManager.registerSynchronization(current);
			TransactionSynchronizationManager.bindResource(this, current);
		}
		return current;
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
	 * Collects the queues of one transaction.
	 */
	private final class Synchronization implements TransactionSynchronization {

		private final Set<String> queues = new LinkedHashSet<>();

		@Override
		public int getOrder() {
			// Other callbacks may take their time.
			return HIGHEST_PRECEDENCE;
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
		public void afterCommit() {
			tell();
		}

		@Override
		public void afterCompletion(int status) {
			TransactionSynchronizationManager.unbindResourceIfPossible(SendTransactions.this);
			if (status == STATUS_COMMITTED && !this.queues.isEmpty()) {
				// Sent since the commit.
				commitLate();
			}
			if (status != STATUS_ROLLED_BACK && !this.queues.isEmpty()) {
				tell();
			}
		}

		private void tell() {
			Set<String> told = Set.copyOf(this.queues);
			this.queues.clear();
			SendTransactions.this.commitListener.committed(told);
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

}
