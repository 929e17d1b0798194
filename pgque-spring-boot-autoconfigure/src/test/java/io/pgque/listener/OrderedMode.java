package io.pgque.listener;

import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.TransactionStatus;

/**
 * The ways to work of a container that keep the order of a key.
 */
enum OrderedMode {

	EXCLUSIVE, PARALLEL, PARTITIONED, SAVEPOINTS, REPEATING;

	void apply(PgqueContainerProperties properties) {
		properties.setMode((this == PARTITIONED) ? ListenerMode.PARTITIONED : ListenerMode.EXCLUSIVE);
		properties.setPartitions(3);
		properties.setConcurrency((this == PARALLEL) ? 3 : (this == PARTITIONED) ? 2 : 1);
		properties.setTransactional(this == SAVEPOINTS || this == REPEATING);
	}

	@Nullable PlatformTransactionManager transactionManager(DataSource dataSource) {
		JdbcTransactionManager savepoints = new JdbcTransactionManager(dataSource);
		return switch (this) {
			case SAVEPOINTS -> savepoints;
			case REPEATING -> new WithoutSavepoints(savepoints);
			default -> null;
		};
	}

	/**
	 * A manager with which a batch runs again after a failure, as with JPA.
	 */
	private record WithoutSavepoints(PlatformTransactionManager delegate) implements PlatformTransactionManager {

		@Override
		public TransactionStatus getTransaction(@Nullable TransactionDefinition definition) {
			return this.delegate.getTransaction(definition);
		}

		@Override
		public void commit(TransactionStatus status) {
			this.delegate.commit(status);
		}

		@Override
		public void rollback(TransactionStatus status) {
			this.delegate.rollback(status);
		}

	}

}
