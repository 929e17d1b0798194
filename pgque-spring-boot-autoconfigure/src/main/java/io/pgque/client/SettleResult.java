package io.pgque.client;

import java.util.List;

/**
 * What settling a batch did.
 *
 * @param settled whether the batch was still open; when not, nothing was changed
 * @param retried how many events will come again
 * @param deadIds the ids of the events that became dead letters
 * @since 0.1.0
 */
public record SettleResult(boolean settled, int retried, List<Long> deadIds) {

	/**
	 * Creates a result.
	 */
	public SettleResult {
		deadIds = List.copyOf(deadIds);
	}

}
