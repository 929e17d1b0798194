package io.pgque.listener;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.springframework.core.task.VirtualThreadTaskExecutor;

/**
 * Makes the threads of a container: virtual ones, when the application runs on such.
 */
final class ContainerThreads {

	private static final int KEEP_IDLE_SECONDS = 10;

	private final String name;

	private final boolean virtual;

	ContainerThreads(ListenerIdentity identity, PgqueContainerProperties properties) {
		this.name = "pgque-" + identity.listenerId();
		this.virtual = properties.isVirtualThreads();
	}

	/**
	 * Create a thread.
	 * @param suffix tells it from the others of the container
	 */
	Thread create(String suffix, Runnable task) {
		if (!this.virtual) {
			return new Thread(task, this.name + suffix);
		}
		Thread thread = new VirtualThreadTaskExecutor().getVirtualThreadFactory().newThread(task);
		thread.setName(this.name + suffix);
		return thread;
	}

	/**
	 * Create what runs so many handlers at the same time; idle threads end.
	 */
	ExecutorService executor(int concurrency) {
		AtomicInteger number = new AtomicInteger();
		ThreadFactory factory = (task) -> create("-" + number.incrementAndGet(), task);
		ThreadPoolExecutor executor = new ThreadPoolExecutor(concurrency, concurrency, KEEP_IDLE_SECONDS,
				TimeUnit.SECONDS, new LinkedBlockingQueue<>(), factory);
		executor.allowCoreThreadTimeOut(true);
		return executor;
	}

}
