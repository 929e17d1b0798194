package io.pgque.listener;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;

import io.pgque.client.BatchPages;
import io.pgque.client.EventRow;
import io.pgque.client.LeaseLostException;
import io.pgque.client.Page;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Takes one batch from its first page to its settlement. How its messages get to their
 * handlers is the {@link DispatchStrategy}'s. A batch is settled when all of its pages
 * were handled; when the loop has to halt or the error handler says so, what was done
 * until then.
 */
final class BatchProcessor {

	private static final Log logger = LogFactory.getLog(BatchProcessor.class);

	/**
	 * So many failures and replies are kept in memory; then the batch is settled as far
	 * as it is done, so that one of a million failures needs no more memory than its
	 * page.
	 */
	static final int MAX_FAILURES = 10_000;

	/**
	 * So many messages, from the first that is not acknowledged, are kept in memory; then
	 * the batch ends there.
	 */
	static final int MAX_UNACKNOWLEDGED = 100_000;

	private static final int SETTLE_ATTEMPTS = 5;

	private static final Duration SETTLE_PAUSE = Duration.ofMillis(500);

	/**
	 * So long a batch is settled alone after that failed together with receiving the next
	 * one, which may be what is wrong.
	 */
	private static final Duration SEPARATE = Duration.ofMinutes(1);

	private final PgqueClient client;

	private final ListenerIdentity identity;

	private final PgqueContainerProperties properties;

	private final DispatchStrategy strategy;

	private final ContainerEvents events;

	private final CounterBoard counters;

	private final LoopControl control;

	private final FailureBackOff.Observer health;

	private final BatchRun.StubbornMessages stubborn = new BatchRun.StubbornMessages();

	private final FailureBrake brake;

	private long separateUntil = System.nanoTime();

	BatchProcessor(PgqueClient client, ListenerIdentity identity, PgqueContainerProperties properties,
			DispatchStrategy strategy, ContainerEvents events, CounterBoard counters, LoopControl control,
			FailureBackOff.Observer health) {
		this.client = client;
		this.identity = identity;
		this.properties = properties;
		this.strategy = strategy;
		this.events = events;
		this.counters = counters;
		this.control = control;
		this.health = health;
		this.brake = new FailureBrake(properties);
	}

	/**
	 * Handle a batch.
	 * @param first its first page, not empty
	 * @param successor settles a batch of which nothing failed and receives the next one,
	 * if it can; otherwise it returns {@code null}
	 * @return how it ended
	 * @throws RuntimeException when the database failed; nothing is settled then, or only
	 * a first part
	 */
	BatchTransaction.Received process(Page first, LongFunction<@Nullable Page> successor) {
		KeyHolds holds = this.properties.isHoldFailedKeys() ? new KeyHolds() : null;
		BatchCompleter completer = new BatchCompleter(this.client, this.identity, this.events, this.counters,
				first.batchId(), holds);
		BatchRun run = new BatchRun(this.identity, this.properties, completer, this.stubborn, this.brake);
		BatchEnd end = handle(first, run, holds);
		if (end == null && completer.windowSize() == 0) {
			Page next = settleAndReceive(completer, successor);
			if (next == null) {
				settle(completer::settleBatch, completer.batchId());
			}
			return new BatchTransaction.Received(BatchEnd.CONTINUE, next);
		}
		settlePrefix(run);
		return new BatchTransaction.Received((end != null) ? aborted(end, completer) : unacknowledged(completer), null);
	}

	/**
	 * Settle the whole batch together with receiving the next one. What fails is tried
	 * without that, so that nothing that is wrong with the next batch keeps this one from
	 * being settled.
	 * @return {@code null} when it is not settled
	 */
	private @Nullable Page settleAndReceive(BatchCompleter completer, LongFunction<@Nullable Page> successor) {
		if (!completer.isAckOnly() || System.nanoTime() - this.separateUntil < 0) {
			return null;
		}
		this.control.begin(LoopControl.Activity.SETTLING);
		try {
			Page next = successor.apply(completer.batchId());
			if (next != null) {
				completer.settled();
			}
			return next;
		}
		catch (LeaseLostException ex) {
			return null;
		}
		catch (RuntimeException ex) {
			separate(completer.batchId(), ex);
			return null;
		}
		catch (VirtualMachineError ex) {
			// Perhaps the next page needs more memory than there is.
			separate(completer.batchId(), ex);
			try {
				settle(completer::settleBatch, completer.batchId());
			}
			catch (RuntimeException failure) {
				ex.addSuppressed(failure);
			}
			throw ex;
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
	}

	private void separate(long batchId, Throwable failure) {
		this.separateUntil = System.nanoTime() + SEPARATE.toNanos();
		logger.warn("Settling batch " + batchId + " of " + this.identity
				+ " together with receiving the next one failed; for " + SEPARATE.toSeconds()
				+ " s they are done one after the other: " + failure);
	}

	private BatchEnd aborted(BatchEnd end, BatchCompleter completer) {
		BatchEnd.Abort abort = end.abort();
		if (abort != null) {
			Duration pause = end.pause();
			AfterCommit.run(() -> {
				this.counters.batchesAborted.increment();
				this.events.batchAborted(completer.batchId(), abort.messageId(), pause, abort.failure());
			});
		}
		return end;
	}

	/**
	 * What was not acknowledged comes again, but not at once: it would be handed over
	 * without a pause for as long as nobody acknowledges it.
	 */
	private BatchEnd unacknowledged(BatchCompleter completer) {
		Duration pause = this.properties.getFailureBrakePause();
		logger.warn(completer.openCount() + " messages of batch " + completer.batchId() + " of " + this.identity
				+ " were not acknowledged; they come again, with what follows, in " + pause.toMillis() + " ms");
		return new BatchEnd(pause, null, null);
	}

	/**
	 * Let all pages be handled.
	 * @return {@code null} when all of them were, or nothing more fits into memory before
	 * it is acknowledged; otherwise how the batch ends early
	 */
	private @Nullable BatchEnd handle(Page first, BatchRun run, @Nullable KeyHolds holds) {
		BatchPages pages = this.client.batchPages(first.batchId(), this.properties.getPageSize(),
				this.properties.getPageBytes());
		Page page = first;
		while (true) {
			if (holds != null) {
				lookUpPlaces(page, holds, run);
			}
			BatchEnd end = dispatch(page, run);
			if (end != null || !page.more()) {
				return end;
			}
			if (run.completer().keptCount() >= MAX_FAILURES) {
				return BatchEnd.CONTINUE;
			}
			if (run.completer().windowSize() >= MAX_UNACKNOWLEDGED) {
				return null;
			}
			page = nextPage(pages, page, run);
		}
	}

	private @Nullable BatchEnd dispatch(Page page, BatchRun run) {
		List<PgqueMessage> messages = page.rows().stream().map(this::message).toList();
		run.expect(messages);
		try {
			return this.strategy.dispatch(messages, run);
		}
		catch (VirtualMachineError ex) {
			// What was done before it needn't be done again with each attempt.
			settleAfter(ex, run);
			throw ex;
		}
	}

	private void lookUpPlaces(Page page, KeyHolds holds, BatchRun run) {
		Map<Long, String> keys = new LinkedHashMap<>();
		for (EventRow row : page.rows()) {
			if (row.extra1() != null) {
				keys.put(row.id(), row.extra1());
			}
		}
		if (keys.isEmpty()) {
			return;
		}
		this.control.begin(LoopControl.Activity.RECEIVING);
		try {
			holds.add(keys, this.client.holding().places(page.batchId(), keys));
		}
		catch (RuntimeException ex) {
			settleAfter(ex, run);
			throw ex;
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
	}

	private PgqueMessage message(EventRow row) {
		return PgqueMessage.from(this.identity.queue(), this.identity.consumer(), row,
				this.properties.getHeaderColumn());
	}

	private Page nextPage(BatchPages pages, Page page, BatchRun run) {
		long lastId = page.rows().get(page.rows().size() - 1).id();
		this.control.begin(LoopControl.Activity.RECEIVING);
		try {
			return pages.next(lastId);
		}
		catch (RuntimeException ex) {
			settleAfter(ex, run);
			throw ex;
		}
		finally {
			this.control.begin(LoopControl.Activity.IDLE);
		}
	}

	/**
	 * What is done needn't be done again, if it can still be settled.
	 */
	private void settleAfter(Throwable failure, BatchRun run) {
		try {
			settlePrefix(run);
		}
		catch (RuntimeException ex) {
			failure.addSuppressed(ex);
		}
	}

	private void settlePrefix(BatchRun run) {
		settle(run.completer()::settlePrefix, run.completer().batchId());
	}

	/**
	 * Settle, again if the connection is lost meanwhile: what was handled needn't be
	 * handled twice for that. A batch id settles once at most, so trying again does no
	 * harm.
	 */
	private void settle(Runnable settling, long batchId) {
		for (int attempt = 1;; attempt++) {
			this.control.begin(LoopControl.Activity.SETTLING);
			try {
				settling.run();
				if (attempt > 1) {
					this.health.recovered();
				}
				return;
			}
			catch (RuntimeException ex) {
				if (attempt == SETTLE_ATTEMPTS || this.control.isStopping() || this.properties.isTransactional()
						|| !ExceptionClassifier.isInfrastructure(ex)) {
					throw ex;
				}
				logger.warn("Settling batch " + batchId + " of " + this.identity + " failed, trying again: " + ex);
				this.health.failing(ex);
			}
			finally {
				this.control.begin(LoopControl.Activity.IDLE);
			}
			this.control.awaitPause(SETTLE_PAUSE);
		}
	}

}
