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

	private final TransactionFollower follower;

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
		this.follower = new TransactionFollower(this, this.dataSource);
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
	private <T> T inTransaction(String queue, Function<JoinedTransaction, T> joined, Supplier<T> alone) {
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

	private <T> T send(String queue, Function<JoinedTransaction, T> joined, Supplier<T> alone, Connection connection,
			boolean foreign) throws SQLException {
		boolean active = TransactionSynchronizationManager.isActualTransactionActive();
		boolean synchronizing = TransactionSynchronizationManager.isSynchronizationActive();
		boolean autoCommit = connection.getAutoCommit();
		TransactionFollower.Followed followed = (autoCommit || foreign) ? null : this.follower.current();
		boolean over = followed != null && followed.isOver();
		boolean joins = !autoCommit && !foreign && !over && (followed != null || (active && synchronizing));
		if (!joins && (autoCommit || foreign || (synchronizing && !active))) {
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
		if (joins) {
			JoinedTransaction transaction = (followed != null) ? followed : unfollowed();
			T result = joined.apply(transaction);
			transaction.sent(queue);
			return result;
		}
		T result = alone.get();
		if (autoCommit) {
			this.commitListener.committed(Set.of(queue));
		}
		else if (foreign || over || active || synchronizing) {
			// Also after completion of a transaction, or in a scope without one.
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
	 * Return what follows the transactions of the managers it is registered with.
	 */
	TransactionExecutionListener follower() {
		return this.follower;
	}

	/**
	 * Write what was collected for a queue.
	 */
	void write(String queue, List<OutgoingEvent> events) {
		this.writer.accept(queue, events);
	}

	/**
	 * Tell of commits.
	 * @param queues what was sent to, emptied
	 */
	void tell(Set<String> queues) {
		if (!queues.isEmpty()) {
			Set<String> told = Set.copyOf(queues);
			queues.clear();
			this.commitListener.committed(told);
		}
	}

	/**
	 * Commit what was sent since a commit.
	 * @param queues what was sent to
	 */
	void commitLate(Set<String> queues) {
		Connection connection = DataSourceUtils.getConnection(this.dataSource);
		try {
			if (!connection.getAutoCommit()) {
				connection.commit();
			}
		}
		catch (SQLException ex) {
			logger.error("What was sent to " + queues + " after a commit could not be committed", ex);
		}
		finally {
			DataSourceUtils.releaseConnection(connection, this.dataSource);
		}
	}

	private Unfollowed unfollowed() {
		Unfollowed current = (Unfollowed) TransactionSynchronizationManager.getResource(this);
		if (current != null && !TransactionSynchronizationManager.getSynchronizations().contains(current)) {
			// Its transaction is completing, and one of its callbacks has begun another.
			TransactionSynchronizationManager.unbindResource(this);
			current = null;
		}
		if (current == null) {
			current = new Unfollowed();
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
	 * A transaction of which nobody has told before the first send.
	 */
	private final class Unfollowed extends JoinedTransaction {

		/**
		 * Whether it is known that the {@link Ending} is still to come, or not.
		 */
		private boolean located;

		Unfollowed() {
			super(SendTransactions.this);
		}

		@Override
		boolean collect(OutgoingEvent event) {
			if (!this.located) {
				this.located = true;
				if (isEnding()) {
					finish();
				}
				else {
					TransactionSynchronizationManager.registerSynchronization(new Ending(this));
				}
			}
			return super.collect(event);
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
		public void afterCompletion(int status) {
			TransactionSynchronizationManager.unbindResourceIfPossible(SendTransactions.this);
			super.afterCompletion(status);
		}

	}

	/**
	 * Has a transaction write what it has collected after the callbacks that may still
	 * send.
	 */
	private record Ending(JoinedTransaction transaction) implements TransactionSynchronization {

		@Override
		public int getOrder() {
			return LOWEST_PRECEDENCE;
		}

		@Override
		public void beforeCommit(boolean readOnly) {
			this.transaction.finish();
		}

	}

}
