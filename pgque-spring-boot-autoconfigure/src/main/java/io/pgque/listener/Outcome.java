package io.pgque.listener;

import org.jspecify.annotations.Nullable;

/**
 * What came of one message.
 */
sealed interface Outcome {

	/**
	 * Its handler ended normally.
	 *
	 * @param reply what is to be sent when the message is settled, {@code null} for
	 * nothing
	 */
	record Handled(@Nullable PreparedReply reply) implements Outcome {
	}

	/**
	 * A reply and who sends it.
	 *
	 * @param reply the reply
	 * @param sender sends it
	 */
	record PreparedReply(PgqueReply reply, ReplySender sender) {
	}

	/**
	 * It is passed over.
	 */
	record Skipped() implements Outcome {
	}

	/**
	 * It failed.
	 *
	 * @param failure what was thrown
	 * @param action what is to be done
	 * @param together whether it failed with others that were handed over with it, none
	 * of which need be to blame
	 * @param echo whether it only shares the failure of a message before it, which was
	 * told already
	 */
	record Failed(Exception failure, FailureAction action, boolean together, boolean echo) implements Outcome {
	}

	/**
	 * Its handler has decided what is to be done with it.
	 *
	 * @param action what is to be done; a retry or a dead letter
	 * @param reason why
	 */
	record Decided(FailureAction action, @Nullable String reason) implements Outcome {
	}

	/**
	 * It waits for another message of its key, which has failed.
	 */
	record Held() implements Outcome {
	}

	/**
	 * Its handler has returned and not acknowledged it.
	 */
	record Open() implements Outcome {
	}

	/**
	 * Its type has no handler, and the container is to stop before it.
	 *
	 * @param failure tells so
	 */
	record Refused(UnknownEventTypeException failure) implements Outcome {
	}

	/**
	 * Its handler was interrupted, because the container has to stop.
	 */
	record Interrupted() implements Outcome {
	}

	/**
	 * The message is done.
	 */
	Outcome HANDLED = new Handled(null);

	/**
	 * The message is passed over.
	 */
	Outcome SKIPPED = new Skipped();

	/**
	 * The message is held back.
	 */
	Outcome HELD = new Held();

	/**
	 * The message may be acknowledged later.
	 */
	Outcome OPEN = new Open();

	/**
	 * The message has no outcome.
	 */
	Outcome INTERRUPTED = new Interrupted();

}
