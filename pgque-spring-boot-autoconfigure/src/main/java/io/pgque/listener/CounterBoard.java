package io.pgque.listener;

import java.util.concurrent.atomic.LongAdder;

/**
 * The counters behind {@link ListenerCounters}.
 */
final class CounterBoard {

	final LongAdder handled = new LongAdder();

	final LongAdder skipped = new LongAdder();

	final LongAdder retried = new LongAdder();

	final LongAdder deadLettered = new LongAdder();

	final LongAdder batchesSettled = new LongAdder();

	final LongAdder batchesAborted = new LongAdder();

	final LongAdder staleSettles = new LongAdder();

	final LongAdder failures = new LongAdder();

	final LongAdder heldBack = new LongAdder();

	ListenerCounters snapshot() {
		return new ListenerCounters(this.handled.sum(), this.skipped.sum(), this.retried.sum(), this.deadLettered.sum(),
				this.batchesSettled.sum(), this.batchesAborted.sum(), this.staleSettles.sum(), this.failures.sum(),
				this.heldBack.sum());
	}

}
