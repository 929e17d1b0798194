package io.pgque.listener;

import java.util.function.Supplier;

import io.pgque.client.Page;
import org.jspecify.annotations.Nullable;

/**
 * What is around a batch, from receiving its first page to settling it.
 */
interface BatchTransaction {

	/**
	 * Nothing: each statement commits by itself, and no connection is held meanwhile.
	 */
	BatchTransaction NONE = Supplier::get;

	/**
	 * Receive, handle and settle a batch.
	 * @param work does it; {@code null} means that nothing was received, and nothing is
	 * to be committed
	 * @return what the work returns
	 */
	@Nullable Received execute(Supplier<@Nullable Received> work);

	/**
	 * What was received.
	 *
	 * @param end how the batch ended, {@code null} when there was none
	 * @param next the first page of the next batch, if it was received when this one was
	 * settled; empty when there was none
	 */
	record Received(@Nullable BatchEnd end, @Nullable Page next) {
	}

}
