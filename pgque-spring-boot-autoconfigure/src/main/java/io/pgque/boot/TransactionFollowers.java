package io.pgque.boot;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import org.jspecify.annotations.Nullable;

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

	private final List<TransactionExecutionListener> followers = new CopyOnWriteArrayList<>();

	private final TransactionExecutionListener listener = new TransactionExecutionListener() {

		@Override
		public void afterBegin(TransactionExecution transaction, @Nullable Throwable beginFailure) {
			TransactionFollowers.this.followers.forEach((follower) -> follower.afterBegin(transaction, beginFailure));
		}

		@Override
		public void beforeCommit(TransactionExecution transaction) {
			TransactionFollowers.this.followers.forEach((follower) -> follower.beforeCommit(transaction));
		}

	};

	void add(TransactionExecutionListener follower) {
		this.followers.add(follower);
	}

	@Override
	public Object postProcessAfterInitialization(Object bean, String beanName) {
		if (bean instanceof ConfigurableTransactionManager transactionManager) {
			transactionManager.addListener(this.listener);
		}
		return bean;
	}

}
