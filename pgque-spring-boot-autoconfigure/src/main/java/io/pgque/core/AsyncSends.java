package io.pgque.core;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;

import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.Assert;

/**
 * Sends on other threads.
 */
final class AsyncSends implements AutoCloseable {

	/**
	 * Beyond it the caller waits, so that whoever sends more than the database takes
	 * doesn't fill the memory.
	 */
	private static final int CONCURRENCY = 4;

	private static final Duration TERMINATION_TIMEOUT = Duration.ofSeconds(10);

	private @Nullable Executor executor;

	private @Nullable SimpleAsyncTaskExecutor ownExecutor;

	void setExecutor(Executor executor) {
		this.executor = executor;
	}

	CompletableFuture<Long> send(String queue, Supplier<Long> statement) {
		Assert.state(!TransactionSynchronizationManager.isActualTransactionActive(), () -> "What is sent to queue '"
				+ queue + "' on another thread can't join the transaction of its caller. Call sendLater, or send");
		return CompletableFuture.supplyAsync(statement, executor());
	}

	private synchronized Executor executor() {
		Executor executor = this.executor;
		if (executor == null) {
			SimpleAsyncTaskExecutor own = new SimpleAsyncTaskExecutor("pgque-send-");
			own.setConcurrencyLimit(CONCURRENCY);
			own.setTaskTerminationTimeout(TERMINATION_TIMEOUT.toMillis());
			this.ownExecutor = own;
			this.executor = own;
			executor = own;
		}
		return executor;
	}

	@Override
	public synchronized void close() {
		if (this.ownExecutor != null) {
			this.ownExecutor.close();
		}
	}

}
