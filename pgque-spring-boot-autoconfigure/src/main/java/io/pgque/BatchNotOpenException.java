package io.pgque;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when a batch is to be settled that is not open any more: it was settled before,
 * or somebody else took it over. Nothing was settled by the call.
 *
 * @since 0.2.0
 */
@SuppressWarnings("serial")
public class BatchNotOpenException extends PgqueException {

	private final long batchId;

	/**
	 * Creates an exception.
	 * @param batchId the id of the batch
	 * @param problem what is wrong
	 * @param remedy what to do about it
	 */
	public BatchNotOpenException(long batchId, String problem, @Nullable String remedy) {
		super(problem, remedy, null);
		this.batchId = batchId;
	}

	/**
	 * Return the id of the batch.
	 * @return the batch id
	 */
	public long getBatchId() {
		return this.batchId;
	}

}
