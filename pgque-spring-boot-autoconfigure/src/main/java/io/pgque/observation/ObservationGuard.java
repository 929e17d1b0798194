package io.pgque.observation;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Keeps failures of observation from changing what is observed: said once, then only at
 * level DEBUG.
 */
final class ObservationGuard {

	private static final Log logger = LogFactory.getLog(ObservationGuard.class);

	private final String subject;

	private final AtomicBoolean told = new AtomicBoolean();

	/**
	 * Create a guard.
	 * @param subject what is observed, as in "observing ... failed"
	 */
	ObservationGuard(String subject) {
		this.subject = subject;
	}

	<T> T call(Supplier<T> action, T otherwise) {
		try {
			return action.get();
		}
		catch (RuntimeException | LinkageError | AssertionError ex) {
			tell(ex);
			return otherwise;
		}
	}

	void run(Runnable action) {
		try {
			action.run();
		}
		catch (RuntimeException | LinkageError | AssertionError ex) {
			tell(ex);
		}
	}

	private void tell(Throwable failure) {
		String text = "Observing " + this.subject + " failed, which changes nothing else";
		if (this.told.compareAndSet(false, true)) {
			logger.warn(text + " (this is said once)", failure);
		}
		else {
			logger.debug(text, failure);
		}
	}

}
