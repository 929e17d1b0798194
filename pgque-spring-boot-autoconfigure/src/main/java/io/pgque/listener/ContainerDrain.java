package io.pgque.listener;

import io.pgque.client.Page;

/**
 * Handles on the calling thread what is there to be handled, for tests: without a lease,
 * and without waiting for anything.
 */
final class ContainerDrain {

	private final ContainerParts parts;

	ContainerDrain(ContainerParts parts) {
		this.parts = parts;
	}

	/**
	 * Handle batches until there is none, or one has to be left alone for a while.
	 * @throws UnknownEventTypeException when that is to stop the container
	 */
	void drain() {
		this.parts.subscription().run();
		BatchWork work = BatchWork.of(this.parts, new LoopControl(false), FailureBackOff.Observer.NONE,
				(sequential) -> sequential);
		BatchEnd end = BatchEnd.CONTINUE;
		while (end != null && end.pause().isZero()) {
			BatchTransaction.Received received = work.transaction().execute(() -> receive(work.processor()));
			end = (received != null) ? received.end() : null;
			if (end != null && end.refusal() != null) {
				throw end.refusal();
			}
		}
	}

	private BatchTransaction.Received receive(BatchProcessor processor) {
		Page page = this.parts.client()
			.receiveBatch(this.parts.identity().queue(), this.parts.identity().consumer(),
					this.parts.properties().getPageSize(), this.parts.properties().getPageBytes());
		return page.isEmpty() ? new BatchTransaction.Received(null, null) : processor.process(page, (batchId) -> null);
	}

}
