package io.pgque.listener;

import java.time.Duration;

import io.pgque.client.Page;
import io.pgque.client.TickedPage;
import org.jspecify.annotations.Nullable;

/**
 * Where the batches of a loop come from, and what this instance must hold to receive
 * them.
 */
interface BatchSource {

	/**
	 * Get ready to receive.
	 * @param notified whether notifications can be relied on at the moment
	 * @return {@code null} when ready; otherwise it isn't this one's turn
	 */
	@Nullable Wait claim(boolean notified);

	/**
	 * Receive the first page of the next batch, or of the one that is open.
	 * @return the page, empty when there is nothing to do now; {@code null} when it is
	 * not this one's turn any more
	 */
	@Nullable Page receive();

	/**
	 * Return whether {@link #tickAndReceive()} works.
	 */
	default boolean canTick() {
		return false;
	}

	/**
	 * Tick the queue, then receive as {@link #receive()} does.
	 * @return the page and the tick; {@code null} when it is not this one's turn any more
	 */
	default @Nullable TickedPage tickAndReceive() {
		throw new UnsupportedOperationException("It does not tick");
	}

	/**
	 * Settle a batch of which nothing failed, then receive as {@link #receive()} does, in
	 * one statement.
	 * @param batchId the batch
	 * @return the page; {@code null} when nothing was done, since it can't be done so
	 * here, or now
	 */
	default @Nullable Page settleAndReceive(long batchId) {
		return null;
	}

	/**
	 * Return a number that is another one each time that it becomes this one's turn.
	 */
	default long tenure() {
		return 0;
	}

	/**
	 * Return whether it is certainly still this one's turn, so that the next handler may
	 * be called.
	 */
	boolean isHeld();

	/**
	 * Return why what is held may be lost soon.
	 * @return the failure to tell the database that this instance is alive, {@code null}
	 * when there is none, or others see to it
	 */
	default @Nullable Throwable failure() {
		return null;
	}

	/**
	 * A batch is through, or there was none: the loop waits, or receives again.
	 */
	default void rest() {
	}

	/**
	 * Give up what is held although a handler is still running, as one may for ever; the
	 * loop claims again when it has returned. May be called by any thread.
	 * @return whether it was given up; not all can be
	 */
	default boolean giveUp() {
		return false;
	}

	/**
	 * Give up what is held, and let others have their turn. Nothing is received
	 * afterwards.
	 */
	void close();

	/**
	 * It isn't this one's turn.
	 *
	 * @param time there is no use in asking again before it has passed, or a wake-up
	 * @param answered whether the database said so; otherwise nobody asked it
	 */
	record Wait(Duration time, boolean answered) {
	}

}
