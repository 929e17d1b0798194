package io.pgque.ticker;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The queues that want a tick at once, and the time from which each may have one. Also
 * what the ticker's thread waits on. Times are those of {@link System#nanoTime()}.
 */
final class Nudges {

	private final ReentrantLock lock = new ReentrantLock();

	private final Condition changed = this.lock.newCondition();

	/**
	 * How many times as long as its tick a queue has to wait for the next one. Under a
	 * load that never stops, ticking doesn't take more than a third of the time of a
	 * connection, and each tick covers more.
	 */
	private static final int REST = 2;

	private final long minInterval;

	private final Map<String, Long> wanted = new HashMap<>();

	private final Map<String, Long> nextTicks = new HashMap<>();

	private boolean stopped;

	Nudges(long minInterval) {
		this.minInterval = minInterval;
	}

	void add(Collection<String> queues) {
		long now = System.nanoTime();
		this.lock.lock();
		try {
			boolean more = false;
			for (String queue : queues) {
				more |= this.wanted.putIfAbsent(queue, now) == null;
			}
			if (more) {
				// Otherwise the ticker waits for nothing later, and needn't be woken for
				// each commit.
				this.changed.signal();
			}
		}
		finally {
			this.lock.unlock();
		}
	}

	void addLater(Collection<String> queues, long time) {
		this.lock.lock();
		try {
			queues.forEach((queue) -> this.wanted.put(queue, time));
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Note that a queue has had its tick.
	 * @param took how long the ticker was busy with it
	 */
	void ticked(String queue, long took) {
		rest(queue, REST * took);
	}

	/**
	 * Let a queue wait for its next tick, at least as long as from any tick to the next.
	 */
	void rest(String queue, long nanos) {
		this.lock.lock();
		try {
			this.nextTicks.put(queue, System.nanoTime() + Math.max(this.minInterval, nanos));
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Return whether a queue may have a tick now, and nobody is about to take it.
	 */
	boolean isDue(String queue) {
		long now = System.nanoTime();
		this.lock.lock();
		try {
			return !this.wanted.containsKey(queue) && due(queue, now) - now <= 0;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Note that somebody else takes a queue's tick.
	 */
	void delegated(String queue) {
		ticked(queue, 0);
	}

	/**
	 * Take the queues out that may have their tick now.
	 */
	List<String> take(long now) {
		this.lock.lock();
		try {
			List<String> queues = new ArrayList<>();
			this.wanted.forEach((queue, time) -> {
				if (due(queue, time) - now <= 0) {
					queues.add(queue);
				}
			});
			queues.forEach(this.wanted::remove);
			return queues;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Wait until a time, until a queue may have its tick, or for the stop.
	 */
	void await(long time) throws InterruptedException {
		await(time, true);
	}

	/**
	 * Wait until a time or for the stop, whatever queues want.
	 */
	void pause(long time) throws InterruptedException {
		await(time, false);
	}

	private void await(long time, boolean forNudges) throws InterruptedException {
		this.lock.lock();
		try {
			long nanos = (forNudges ? earliest(time) : time) - System.nanoTime();
			while (!this.stopped && nanos > 0) {
				this.changed.awaitNanos(nanos);
				nanos = (forNudges ? earliest(time) : time) - System.nanoTime();
			}
		}
		finally {
			this.lock.unlock();
		}
	}

	private long earliest(long time) {
		long earliest = time;
		for (Map.Entry<String, Long> entry : this.wanted.entrySet()) {
			long due = due(entry.getKey(), entry.getValue());
			earliest = (due - earliest < 0) ? due : earliest;
		}
		return earliest;
	}

	private long due(String queue, long wanted) {
		Long nextTick = this.nextTicks.get(queue);
		return (nextTick != null && nextTick - wanted > 0) ? nextTick : wanted;
	}

	void stop() {
		this.lock.lock();
		try {
			this.stopped = true;
			this.changed.signal();
		}
		finally {
			this.lock.unlock();
		}
	}

	boolean isStopped() {
		this.lock.lock();
		try {
			return this.stopped;
		}
		finally {
			this.lock.unlock();
		}
	}

}
