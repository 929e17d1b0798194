package io.pgque.listener;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.locks.ReentrantLock;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

/**
 * Several handlers at a time, on threads of their own. Messages of one key are handled
 * one after the other in the order of their ids, messages without a key whenever a thread
 * is free. What is oldest comes first, so that little is done in vain when the batch has
 * to end early.
 */
final class ParallelDispatch implements DispatchStrategy {

	private final SequentialDispatch sequential;

	private final LoopControl control;

	private final ExecutorService executor;

	private final int concurrency;

	ParallelDispatch(SequentialDispatch sequential, LoopControl control, ExecutorService executor, int concurrency) {
		this.sequential = sequential;
		this.control = control;
		this.executor = executor;
		this.concurrency = concurrency;
	}

	/**
	 * Handlers at the same time can't be handed lists, nor say what is done up to a
	 * message.
	 * @throws InvalidListenerException when that is what the listener needs
	 */
	static void check(ListenerIdentity identity, EventRoutes routes, PgqueContainerProperties properties) {
		if (properties.getMode() != ListenerMode.EXCLUSIVE || properties.getConcurrency() == 1) {
			return;
		}
		String obstacle = routes.hasBatchListener() ? "takes several messages at a time"
				: (properties.getAckMode() == AckMode.MANUAL) ? "acknowledges by itself" : null;
		if (obstacle != null) {
			throw new InvalidListenerException(
					"The " + identity + " " + obstacle
							+ ", which does not go together with mode 'exclusive' and concurrency "
							+ properties.getConcurrency(),
					"Set concurrency to 1, or choose mode 'partitioned' or 'cooperative'");
		}
	}

	@Override
	public @Nullable BatchEnd dispatch(List<PgqueMessage> messages, BatchRun run) {
		List<Lane> lanes = lanes(messages);
		if (lanes.size() == 1) {
			return this.sequential.dispatch(messages, run);
		}
		if (!this.control.beginHandling()) {
			return BatchEnd.CONTINUE;
		}
		Work work = new Work(lanes, run, Math.min(this.concurrency, lanes.size()));
		try {
			work.start();
			work.await();
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
		return work.end();
	}

	private static List<Lane> lanes(List<PgqueMessage> messages) {
		List<Lane> lanes = new ArrayList<>();
		Map<String, Lane> byKey = new HashMap<>();
		for (PgqueMessage message : messages) {
			Lane lane = (message.extra1() != null) ? byKey.get(message.extra1()) : null;
			if (lane == null) {
				lane = new Lane(new ArrayDeque<>());
				lanes.add(lane);
				if (message.extra1() != null) {
					byKey.put(message.extra1(), lane);
				}
			}
			lane.messages().add(message);
		}
		return lanes;
	}

	/**
	 * Messages that have to be handled one after the other.
	 */
	private record Lane(Deque<PgqueMessage> messages) {

		private long nextId() {
			return this.messages.element().id();
		}

	}

	/**
	 * A page while it is handled.
	 */
	private final class Work implements Runnable {

		private final BatchRun run;

		private final int threads;

		private final CountDownLatch running;

		private final ReentrantLock lock = new ReentrantLock();

		/**
		 * Those that no thread is at work on.
		 */
		private final PriorityQueue<Lane> waiting = new PriorityQueue<>(Comparator.comparingLong(Lane::nextId));

		private final Set<Thread> handling = new HashSet<>();

		private @Nullable BatchEnd end;

		private @Nullable VirtualMachineError error;

		private boolean interrupted;

		private Work(List<Lane> lanes, BatchRun run, int threads) {
			this.waiting.addAll(lanes);
			this.run = run;
			this.threads = threads;
			this.running = new CountDownLatch(threads);
		}

		private void start() {
			for (int i = 0; i < this.threads; i++) {
				ParallelDispatch.this.executor.execute(this);
			}
		}

		@Override
		public void run() {
			try {
				Lane lane = next(null);
				while (lane != null) {
					PgqueMessage message = lane.messages().remove();
					handle(message);
					lane = next(lane);
				}
			}
			catch (VirtualMachineError ex) {
				failed(ex);
			}
			finally {
				this.running.countDown();
			}
		}

		/**
		 * Take the lane whose turn it is. When none waits, each that has something left
		 * has a thread already.
		 * @param last the lane that the thread was at work on
		 */
		private @Nullable Lane next(@Nullable Lane last) {
			this.lock.lock();
			try {
				if (last != null && !last.messages().isEmpty()) {
					this.waiting.add(last);
				}
				if (this.end != null || this.error != null) {
					return null;
				}
				if (!ParallelDispatch.this.control.isHandlingAllowed()) {
					this.end = BatchEnd.CONTINUE;
					return null;
				}
				return this.waiting.poll();
			}
			finally {
				this.lock.unlock();
			}
		}

		private void handle(PgqueMessage message) {
			setHandling(true);
			BatchEnd end;
			try {
				end = this.run.note(message, ParallelDispatch.this.sequential.outcome(message, this.run));
			}
			finally {
				setHandling(false);
			}
			if (end != null) {
				ends(end);
			}
		}

		private void setHandling(boolean handles) {
			this.lock.lock();
			try {
				if (handles) {
					this.handling.add(Thread.currentThread());
					if (this.interrupted) {
						Thread.currentThread().interrupt();
					}
				}
				else {
					this.handling.remove(Thread.currentThread());
					// It was meant for the handler.
					Thread.interrupted();
				}
			}
			finally {
				this.lock.unlock();
			}
		}

		private void ends(BatchEnd end) {
			this.lock.lock();
			try {
				// The first that is not just an early end tells most.
				if (this.end == null || this.end == BatchEnd.CONTINUE) {
					this.end = end;
				}
			}
			finally {
				this.lock.unlock();
			}
		}

		private void failed(VirtualMachineError error) {
			this.lock.lock();
			try {
				this.error = error;
			}
			finally {
				this.lock.unlock();
			}
		}

		/**
		 * Wait until no handler is running any more. When the loop is interrupted because
		 * its handlers take too long, they are.
		 */
		private void await() {
			while (true) {
				try {
					this.running.await();
					return;
				}
				catch (InterruptedException ex) {
					interruptHandlers();
				}
			}
		}

		private void interruptHandlers() {
			if (!ParallelDispatch.this.control.isHandlerInterrupted()) {
				return;
			}
			this.lock.lock();
			try {
				this.interrupted = true;
				this.handling.forEach(Thread::interrupt);
			}
			finally {
				this.lock.unlock();
			}
		}

		private @Nullable BatchEnd end() {
			this.lock.lock();
			try {
				if (this.error != null) {
					throw this.error;
				}
				return this.end;
			}
			finally {
				this.lock.unlock();
			}
		}

	}

}
