package io.pgque.core;

import io.pgque.client.ReplayAllRow;
import org.jspecify.annotations.Nullable;

/**
 * What replaying all dead letters of a queue did.
 *
 * @param replayed how many are back in the queue
 * @param failed how many could not be replayed and stay dead letters
 * @param firstError the error text of the first that failed
 * @since 0.1.0
 */
public record ReplayAllResult(long replayed, long failed, @Nullable String firstError) {

	static ReplayAllResult from(ReplayAllRow row) {
		return new ReplayAllResult(row.replayed(), row.failed(), row.firstError());
	}

}
