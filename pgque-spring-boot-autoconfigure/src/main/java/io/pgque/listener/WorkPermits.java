package io.pgque.listener;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Lets so many loops of a container be at work at the same time. The others wait for
 * their turn, first come first served.
 */
final class WorkPermits {

	private final ReentrantLock lock = new ReentrantLock();

	private final Set<LoopControl> holders = new HashSet<>();

	private final Deque<LoopControl> waiting = new ArrayDeque<>();

	private final int permits;

	WorkPermits(int permits) {
		this.permits = permits;
	}

	/**
	 * Take a permit, if it is this loop's turn.
	 * @return whether the loop has one; otherwise it is woken when it has
	 */
	boolean acquire(LoopControl loop) {
		this.lock.lock();
		try {
			if (this.holders.contains(loop)) {
				return true;
			}
			if (this.waiting.isEmpty() && this.holders.size() < this.permits) {
				return this.holders.add(loop);
			}
			if (!this.waiting.contains(loop)) {
				this.waiting.add(loop);
			}
			return false;
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * Give the permit to the next, or no longer wait for one.
	 */
	void release(LoopControl loop) {
		LoopControl next = null;
		this.lock.lock();
		try {
			this.waiting.remove(loop);
			if (this.holders.remove(loop)) {
				next = this.waiting.poll();
				if (next != null) {
					this.holders.add(next);
				}
			}
		}
		finally {
			this.lock.unlock();
		}
		if (next != null) {
			next.wakeForTurn();
		}
	}

}
