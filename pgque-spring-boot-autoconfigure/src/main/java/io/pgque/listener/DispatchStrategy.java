package io.pgque.listener;

import java.util.List;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

/**
 * How the messages of a page get to their handlers: one after the other, several at a
 * time, in threads of their own. A strategy only notes outcomes; paging and settling are
 * the {@link BatchProcessor}'s.
 */
@FunctionalInterface
interface DispatchStrategy {

	/**
	 * Let the messages be handled, and note in the run what came of each. Returns when no
	 * handler is running any more.
	 * @param messages the messages of a page, in the order of their ids
	 * @param run where outcomes are noted
	 * @return {@code null} to go on with the next page; otherwise how the batch ends: the
	 * messages up to the first without an outcome are settled, the rest comes again and
	 * doesn't count as failed
	 * @throws VirtualMachineError when a handler has thrown it
	 */
	@Nullable BatchEnd dispatch(List<PgqueMessage> messages, BatchRun run);

}
