package io.pgque.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;

/**
 * Threads that work against one another, and fail the test when one of them fails.
 */
final class Crowd implements AutoCloseable {

	private final ExecutorService executor = Executors.newCachedThreadPool();

	private final AtomicBoolean stopped = new AtomicBoolean();

	private final CountDownLatch failure = new CountDownLatch(1);

	private final List<Future<?>> members = new ArrayList<>();

	/**
	 * Something that is done over and over.
	 */
	@FunctionalInterface
	interface Work {

		void run() throws Exception;

	}

	/**
	 * Start a thread that repeats its work until {@link #stop()}, or until it fails.
	 */
	void repeat(Work work) {
		this.members.add(this.executor.submit(() -> {
			try {
				while (!this.stopped.get()) {
					work.run();
				}
			}
			catch (Exception ex) {
				this.failure.countDown();
				throw ex;
			}
			return null;
		}));
	}

	/**
	 * Start one thing in the background.
	 */
	<T> Future<T> start(Callable<T> work) {
		return this.executor.submit(work);
	}

	/**
	 * Do a thing on several threads at the same instant.
	 * @return the results, in no order
	 */
	<T> List<T> atOnce(int threads, Callable<T> work) throws Exception {
		CyclicBarrier barrier = new CyclicBarrier(threads);
		List<Future<T>> futures = new ArrayList<>();
		for (int i = 0; i < threads; i++) {
			futures.add(this.executor.submit(() -> {
				barrier.await(10, TimeUnit.SECONDS);
				return work.call();
			}));
		}
		List<T> results = new ArrayList<>();
		for (Future<T> future : futures) {
			results.add(future.get(60, TimeUnit.SECONDS));
		}
		return results;
	}

	/**
	 * End the repeated work.
	 * @throws ExecutionException if a thread failed
	 */
	void stop() throws Exception {
		this.stopped.set(true);
		for (Future<?> member : this.members) {
			member.get(60, TimeUnit.SECONDS);
		}
		this.members.clear();
	}

	/**
	 * Let the crowd work for a while, then end it.
	 */
	void runFor(long milliseconds) throws Exception {
		runFor(milliseconds, () -> true);
	}

	/**
	 * Let the crowd work for a while, and on until something has happened that is left to
	 * chance, then end it.
	 * @param enough whether it has happened; waited for no longer than a minute
	 */
	void runFor(long milliseconds, BooleanSupplier enough) throws Exception {
		long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
		long limit = end + TimeUnit.MINUTES.toNanos(1);
		boolean failed = false;
		while (!failed && (System.nanoTime() - end < 0 || !enough.getAsBoolean() && System.nanoTime() - limit < 0)) {
			failed = this.failure.await(20, TimeUnit.MILLISECONDS);
		}
		// A failure is reported by it.
		stop();
	}

	@Override
	public void close() {
		this.stopped.set(true);
		this.executor.shutdownNow();
	}

}
