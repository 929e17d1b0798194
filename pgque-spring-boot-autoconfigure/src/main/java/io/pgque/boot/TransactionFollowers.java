package io.pgque.boot;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

import io.pgque.core.PgqueTemplate;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.aop.scope.ScopedObject;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;

/**
 * Has templates follow the transactions of all transaction managers. The managers get
 * their listener before anybody can use them, since they take none while they work, and
 * need no template for it, which may need them.
 */
final class TransactionFollowers implements BeanPostProcessor, BeanFactoryAware {

	private static final Log logger = LogFactory.getLog(TransactionFollowers.class);

	private final List<TransactionExecutionListener> followers = new CopyOnWriteArrayList<>();

	private @Nullable BeanFactory beanFactory;

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

	@Override
	public void setBeanFactory(BeanFactory beanFactory) {
		this.beanFactory = beanFactory;
	}

	@Override
	public Object postProcessAfterInitialization(Object bean, String beanName) {
		// The target of a scoped proxy is a bean of its own.
		if (bean instanceof ScopedObject) {
			return bean;
		}
		if (bean instanceof ConfigurableTransactionManager transactionManager) {
			follow(transactionManager, beanName);
		}
		else if (bean instanceof PgqueTemplate template && isKept(beanName)) {
			this.followers.add(template.getTransactionExecutionListener());
		}
		return bean;
	}

	private boolean isKept(String beanName) {
		BeanFactory beanFactory = this.beanFactory;
		return beanFactory != null && beanFactory.containsBean(beanName) && beanFactory.isSingleton(beanName);
	}

	private void follow(ConfigurableTransactionManager transactionManager, String beanName) {
		try {
			transactionManager.addListener(this.all);
		}
		catch (UnsupportedOperationException ex) {
			logger.debug("Transaction manager '" + beanName + "' has a list of listeners that takes no other: " + ex);
			followWithNewList(transactionManager, beanName);
		}
	}

	private void followWithNewList(ConfigurableTransactionManager transactionManager, String beanName) {
		try {
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
