package io.pgque.test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

import io.pgque.listener.PgqueBatchInterceptor;
import io.pgque.listener.PgqueMessageInterceptor;
import io.pgque.support.ReceivedMessage;
import org.jspecify.annotations.Nullable;

/**
 * Records the calls of handlers, with what they threw. As a bean it is called around all
 * handlers of the application.
 *
 * @since 0.1.0
 */
public class PgqueListenerTestHarness implements PgqueMessageInterceptor, PgqueBatchInterceptor {

	private final ReentrantLock lock = new ReentrantLock();

	private final Condition called = this.lock.newCondition();

	private final List<Invocation> invocations = new ArrayList<>();

	/**
	 * Create a harness.
	 */
	public PgqueListenerTestHarness() {
	}

	@Override
	public void success(ReceivedMessage message) {
		add(new Invocation(List.of(message), null));
	}

	@Override
	public void failure(ReceivedMessage message, Throwable failure) {
		add(new Invocation(List.of(message), failure));
	}

	@Override
	public void success(List<? extends ReceivedMessage> messages) {
		add(new Invocation(List.copyOf(messages), null));
	}

	@Override
	public void failure(List<? extends ReceivedMessage> messages, Throwable failure) {
		add(new Invocation(List.copyOf(messages), failure));
	}

	private void add(Invocation invocation) {
		this.lock.lock();
		try {
			this.invocations.add(invocation);
			this.called.signalAll();
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return all calls that have ended, in the order of their ends.
	 * @return the calls, a copy
	 */
	public List<Invocation> getInvocations() {
		this.lock.lock();
		try {
			return List.copyOf(this.invocations);
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return the calls of one consumer's handlers that have ended.
	 * @param queue the queue
	 * @param consumer the consumer
	 * @return the calls in the order of their ends, a copy
	 */
	public List<Invocation> getInvocations(String queue, String consumer) {
		return getInvocations().stream().filter((invocation) -> invocation.isOf(queue, consumer)).toList();
	}

	/**
	 * Wait until handlers of a consumer have been called a number of times, for tests of
	 * running containers.
	 * @param queue the queue
	 * @param consumer the consumer
	 * @param count how many calls are expected
	 * @param timeout how long to wait
	 * @return the calls, as many as expected or more
	 * @throws IllegalStateException when there have been fewer; says which
	 */
	public List<Invocation> awaitInvocations(String queue, String consumer, int count, Duration timeout) {
		long left = timeout.toNanos();
		this.lock.lock();
		try {
			List<Invocation> found = getInvocations(queue, consumer);
			while (found.size() < count) {
				if (left <= 0) {
					throw new IllegalStateException("Expected " + count + " calls of handlers of consumer '" + consumer
							+ "' on queue '" + queue + "' within " + TimeUnit.NANOSECONDS.toMillis(timeout.toNanos())
							+ " ms, but there were " + found.size() + ": " + found);
				}
				left = this.called.awaitNanos(left);
				found = getInvocations(queue, consumer);
			}
			return found;
		}
		catch (InterruptedException ex) {
			Thread.currentThread().interrupt();
			throw new IllegalStateException("Interrupted while waiting for handlers to be called", ex);
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Forget all calls.
	 */
	public void clear() {
		this.lock.lock();
		try {
			this.invocations.clear();
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * A call of a handler.
	 *
	 * @param messages the messages it was given: one, unless it takes several
	 * @param failure what it threw, {@code null} when it returned
	 * @since 0.1.0
	 */
	public record Invocation(List<ReceivedMessage> messages, @Nullable Throwable failure) {

		/**
		 * Return the first message, which is the only one unless the handler takes
		 * several.
		 * @return the message
		 */
		public ReceivedMessage message() {
			return this.messages.get(0);
		}

		private boolean isOf(String queue, String consumer) {
			return message().queue().equals(queue) && message().consumer().equals(consumer);
		}

	}

}
