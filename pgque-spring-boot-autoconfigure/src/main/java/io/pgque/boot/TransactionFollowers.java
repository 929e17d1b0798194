package io.pgque.boot;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.aop.scope.ScopedObject;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;

/**
 * Has templates follow the transactions of all transaction managers. The managers get
 * their listener before anybody can use them, since they take none while they work, and
 * need no template for it, which may need them.
 */
final class TransactionFollowers implements BeanPostProcessor {

	private static final Log logger = LogFactory.getLog(TransactionFollowers.class);

	private final List<TransactionExecutionListener> followers = new CopyOnWriteArrayList<>();

	private final TransactionExecutionListener all = new TransactionExecutionListener() {

		@Override
		public void afterBegin(TransactionExecution transaction, @Nullable Throwable beginFailure) {
			tell((follower) -> follower.afterBegin(transaction, beginFailure));
		}

		@Override
		public void beforeCommit(TransactionExecution transaction) {
			tell((follower) -> follower.beforeCommit(transaction));
		}

		@Override
		public void afterCommit(TransactionExecution transaction, @Nullable Throwable commitFailure) {
			tell((follower) -> follower.afterCommit(transaction, commitFailure));
		}

		@Override
		public void afterRollback(TransactionExecution transaction, @Nullable Throwable rollbackFailure) {
			tell((follower) -> follower.afterRollback(transaction, rollbackFailure));
		}

		private void tell(Consumer<TransactionExecutionListener> callback) {
			TransactionFollowers.this.followers.forEach(callback);
		}

	};

	void add(TransactionExecutionListener follower) {
		this.followers.add(follower);
	}

	@Override
	public Object postProcessAfterInitialization(Object bean, String beanName) {
		// The target of a scoped proxy is a bean of its own.
		if (bean instanceof ConfigurableTransactionManager transactionManager && !(bean instanceof ScopedObject)) {
			follow(transactionManager, beanName);
		}
		return bean;
	}

	private void follow(ConfigurableTransactionManager transactionManager, String beanName) {
		try {
			// Those that it has may be in a list that takes no other.
			List<TransactionExecutionListener> listeners = new ArrayList<>(
					transactionManager.getTransactionExecutionListeners());
			listeners.add(this.all);
			transactionManager.setTransactionExecutionListeners(listeners);
		}
		catch (UnsupportedOperationException ex) {
			logger.info("Transaction manager '" + beanName + "' takes no listeners, so what is published in its "
					+ "transactions costs a little more: " + ex);
		}
	}

}
