package io.pgque.listener;

import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;

import org.jspecify.annotations.Nullable;

/**
 * Knows whether a container fails to receive or to settle, and tells when that begins and
 * ends. Where it has several threads, it fails while one of them does.
 */
final class ContainerHealth {

	private final ContainerEvents events;

	private final ReentrantLock lock = new ReentrantLock();

	private final Set<Object> failing = new HashSet<>();

	private long since;

	ContainerHealth(ContainerEvents events) {
		this.events = events;
	}

	/**
	 * Return what is to be told about a part of the container.
	 * @param owner the part
	 */
	Part part(Object owner) {
		return new Part(owner);
	}

	private void failed(Object owner, Throwable failure) {
		boolean begins;
		this.lock.lock();
		try {
			begins = this.failing.isEmpty();
			this.failing.add(owner);
			if (begins) {
				this.since = System.nanoTime();
			}
		}
		finally {
			this.lock.unlock();
		}
		if (begins) {
			this.events.failing(failure);
		}
	}

	/**
	 * A part works, or has ended, so that the rest may work.
	 */
	void fine(Object owner) {
		boolean ends;
		Duration time;
		this.lock.lock();
		try {
			ends = this.failing.remove(owner) && this.failing.isEmpty();
			time = Duration.ofNanos(System.nanoTime() - this.since);
		}
		finally {
			this.lock.unlock();
		}
		if (ends) {
			this.events.recovered(time);
		}
	}

	/**
	 * The container stops, whether it fails or not.
	 */
	void stopped() {
		this.lock.lock();
		try {
			this.failing.clear();
		}
		finally {
			this.lock.unlock();
		}
	}

	boolean isFailing() {
		this.lock.lock();
		try {
			return !this.failing.isEmpty();
		}
		finally {
			this.lock.unlock();
		}
	}

	/**
	 * One thread of the container, which alone uses it.
	 */
	final class Part implements FailureBackOff.Observer {

		private final Object owner;

		private boolean works = true;

		private boolean keeps = true;

		private Part(Object owner) {
			this.owner = owner;
		}

		@Override
		public void failing(Throwable failure) {
			this.works = false;
			failed(this.owner, failure);
		}

		@Override
		public void recovered() {
			this.works = true;
			tellFine();
		}

		/**
		 * Tell whether what it holds can be kept.
		 * @param failure why not, {@code null} when it can
		 */
		void keeps(@Nullable Throwable failure) {
			boolean kept = this.keeps;
			this.keeps = failure == null;
			if (failure != null && kept) {
				failed(this.owner, failure);
			}
			else if (failure == null && !kept) {
				tellFine();
			}
		}

		private void tellFine() {
			if (this.works && this.keeps) {
				fine(this.owner);
			}
		}

	}

}
