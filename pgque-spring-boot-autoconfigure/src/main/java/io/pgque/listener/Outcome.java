package io.pgque.listener;

/**
 * What came of one message.
 */
sealed interface Outcome {

	/**
	 * Its handler ended normally.
	 */
	record Handled() implements Outcome {
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
	 */
	record Failed(Exception failure, FailureAction action) implements Outcome {
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
	Outcome HANDLED = new Handled();

	/**
	 * The message is passed over.
	 */
	Outcome SKIPPED = new Skipped();

	/**
	 * The message has no outcome.
	 */
	Outcome INTERRUPTED = new Interrupted();

}
