package io.pgque.listener;

import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;

import io.pgque.client.Page;
import io.pgque.client.TickedPage;
import io.pgque.event.ListenerContainerStoppedEvent.Reason;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * The loop of a container: receive, handle, settle, and wait when there is nothing to do.
 * It ends when it is told to, and for no failure.
 */
final class PollLoop {

	private static final Log logger = LogFactory.getLog(PollLoop.class);

	private static final Duration FIRST_BACK_OFF = Duration.ofMillis(250);

	// So that work goes on soon after an outage, however long that was.
	private static final Duration MAX_BACK_OFF = Duration.ofSeconds(5);

	private final BatchSource source;

	private final ListenerIdentity identity;

	private final PgqueContainerProperties properties;

	private final BatchTransaction transaction;

	private final BatchProcessor processor;

	private final CounterBoard counters;

	private final LoopControl control;

	private final Runnable subscription;

	private final BooleanSupplier notified;

	private final LongConsumer ticked;

	private final ContainerHealth.Part health;

	private final FailureBackOff backOff;

	/**
	 * Hands back the tick that is to be taken with the next receive.
	 */
	private @Nullable Runnable tick;

	/**
	 * Whether the last attempt to tick failed: to look for messages writes nothing when
	 * there are none, and works where no tick is taken, such as on a read-only server.
	 */
	private boolean tickFailed;

	/**
	 * The first page of the batch that was received when the last one was settled.
	 */
	private @Nullable Page next;

	/**
	 * The wake-ups before that.
	 */
	private long nextSeen;

	/**
	 * The tenure of the source then: in another one the batch may be somebody else's.
	 */
	private long nextTenure;

	/**
	 * Create a loop.
	 * @param source where batches come from
	 * @param transaction what is around a batch
	 * @param subscription makes sure that the consumer is subscribed
	 * @param notified whether wake-ups can be relied on at the moment
	 * @param ticked is told the ticks that the loop takes
	 * @param health is told whether the loop works
	 */
	PollLoop(BatchSource source, ListenerIdentity identity, PgqueContainerProperties properties,
			BatchTransaction transaction, BatchProcessor processor, CounterBoard counters, LoopControl control,
			Runnable subscription, BooleanSupplier notified, LongConsumer ticked, ContainerHealth.Part health) {
		this.source = source;
		this.identity = identity;
		this.properties = properties;
		this.transaction = transaction;
		this.processor = processor;
		this.counters = counters;
		this.control = control;
		this.subscription = subscription;
		this.notified = notified;
		this.ticked = ticked;
		this.health = health;
		this.backOff = new FailureBackOff(logger, "Receiving by " + identity, FIRST_BACK_OFF, MAX_BACK_OFF, health);
	}

	/**
	 * Run until a stop is requested.
	 * @param pauses is told when the loop pauses and goes on
	 * @return why it ended
	 */
	Reason run(PauseListener pauses) {
		try {
			while (!this.control.isStopping()) {
				try {
					if (this.control.isPauseRequested()) {
						handBack(this.control.takeTick());
						this.next = null;
						pauses.paused();
						this.control.awaitResume();
						if (!this.control.isPauseRequested()) {
							pauses.resumed();
						}
					}
					else if (!pass()) {
						return Reason.UNKNOWN_TYPE;
					}
				}
				catch (Throwable ex) {
					// Even a VirtualMachineError: memory may be there again in a moment.
					recover(ex);
				}
			}
			return Reason.REQUESTED;
		}
		finally {
			handBack(this.control.takeTick());
		}
	}

	/**
	 * Handle the next batch, or wait for one, or for this loop's turn.
	 * @return whether to go on
	 */
	private boolean pass() {
		long seen = (this.next != null) ? this.nextSeen : this.control.wakeups();
		long turns = this.control.turns();
		BatchTransaction.Received received;
		BatchSource.Wait wait;
		this.health.keeps(this.source.failure());
		this.tick = this.control.takeTick();
		try {
			this.control.begin(LoopControl.Activity.RECEIVING);
			this.subscription.run();
			wait = this.source.claim(this.notified.getAsBoolean());
			received = (wait == null) ? execute() : null;
		}
		finally {
			handBack(this.tick);
			this.tick = null;
			this.next = null;
		}
		if (received != null) {
			this.next = received.next();
		}
		if (wait != null) {
			this.control.begin(LoopControl.Activity.IDLE);
			if (wait.answered()) {
				this.backOff.succeeded();
			}
			this.control.awaitTurn(turns, wait.time());
			return true;
		}
		if (received == null) {
			return true;
		}
		BatchEnd end = received.end();
		if (end == null) {
			this.backOff.succeeded();
			this.control.awaitWakeup(seen, this.notified.getAsBoolean() ? this.properties.getFallbackPollInterval()
					: this.properties.getPollInterval());
			return true;
		}
		// To settle writes too.
		this.tickFailed = false;
		this.backOff.succeeded();
		if (end.refusal() != null) {
			logger.error("Stopping " + this.identity + ", because unknown-type-policy is 'fail': "
					+ end.refusal().getMessage());
			return false;
		}
		this.control.awaitPause(end.pause());
		return true;
	}

	private BatchTransaction.@Nullable Received execute() {
		try {
			return this.transaction.execute(this::receive);
		}
		finally {
			this.source.rest();
		}
	}

	/**
	 * @return {@code null} when it is not this loop's turn any more
	 */
	private BatchTransaction.@Nullable Received receive() {
		this.control.begin(LoopControl.Activity.RECEIVING);
		Page page = receivePage();
		this.control.begin(LoopControl.Activity.IDLE);
		if (page == null) {
			return null;
		}
		return page.isEmpty() ? new BatchTransaction.Received(null, null)
				: this.processor.process(page, this::settleAndReceive);
	}

	private @Nullable Page settleAndReceive(long batchId) {
		if (this.control.isStopping() || this.control.isPauseRequested()) {
			return null;
		}
		this.nextSeen = this.control.wakeups();
		this.nextTenure = this.source.tenure();
		return this.source.settleAndReceive(batchId);
	}

	/**
	 * Receive, with a tick when one is offered. While ticks fail, the loop tries again by
	 * itself when it finds nothing: what keeps this instance from ticking needn't keep
	 * others, and what they have ticked is to be received.
	 */
	private @Nullable Page receivePage() {
		Runnable handBack = this.tick;
		Page next = this.next;
		this.next = null;
		if (handBack == null) {
			Page page = (next != null && this.source.tenure() == this.nextTenure) ? next : this.source.receive();
			if (!this.tickFailed || page == null || !page.isEmpty()) {
				return page;
			}
		}
		this.tickFailed = true;
		TickedPage received = this.source.tickAndReceive();
		this.tickFailed = false;
		if (received == null) {
			return null;
		}
		this.tick = null;
		if (received.tickId() != null) {
			this.ticked.accept(received.tickId());
		}
		else {
			handBack(handBack);
		}
		return received.page();
	}

	/**
	 * Whoever offered a tick relies on it.
	 */
	private static void handBack(@Nullable Runnable tick) {
		if (tick != null) {
			tick.run();
		}
	}

	private void recover(Throwable failure) {
		try {
			failed(failure);
		}
		catch (VirtualMachineError ex) {
			// There was no memory to tell of it either.
			this.control.awaitPause(MAX_BACK_OFF);
		}
	}

	private void failed(Throwable failure) {
		this.control.begin(LoopControl.Activity.IDLE);
		this.counters.failures.increment();
		if (this.control.isStopping()) {
			logger.warn("The last thing that " + this.identity
					+ " did before it stopped failed; what was not settled comes again: " + failure);
			return;
		}
		this.control.awaitPause(this.backOff.failed(failure));
	}

	/**
	 * Is told when the loop pauses and goes on.
	 */
	interface PauseListener {

		/**
		 * The loop has paused.
		 */
		void paused();

		/**
		 * The loop goes on.
		 */
		void resumed();

	}

}
