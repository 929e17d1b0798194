package io.pgque.test;

import io.pgque.listener.ListenerCounters;

/**
 * What came of the messages that were handled while draining.
 *
 * @param handled how many handlers ended normally
 * @param skipped how many messages were passed over
 * @param retried how many failed and will come again
 * @param deadLettered how many became dead letters
 * @since 0.1.0
 */
public record DrainResult(long handled, long skipped, long retried, long deadLettered) {

	/**
	 * Nothing was there to be handled.
	 */
	static final DrainResult NOTHING = new DrainResult(0, 0, 0, 0);

	static DrainResult between(ListenerCounters before, ListenerCounters after) {
		return new DrainResult(after.handled() - before.handled(), after.skipped() - before.skipped(),
				after.retried() - before.retried(), after.deadLettered() - before.deadLettered());
	}

	DrainResult plus(DrainResult other) {
		return new DrainResult(this.handled + other.handled, this.skipped + other.skipped, this.retried + other.retried,
				this.deadLettered + other.deadLettered);
	}

	/**
	 * Return how many messages were settled.
	 * @return their number
	 */
	public long total() {
		return this.handled + this.skipped + this.retried + this.deadLettered;
	}

}
