package io.pgque.listener;

import java.time.Duration;

import io.pgque.support.ReceivedMessage;

import org.springframework.util.Assert;

/**
 * Decides by the exception, looking at it and at all its causes:
 * <ul>
 * <li>{@link RetryMessageException} and {@link RejectMessageException} are done as they
 * say.</li>
 * <li>Then the {@link RetryRules} count.</li>
 * <li>Failures of the infrastructure, such as a database that gives no connection or
 * times out, leave the rest of the batch alone for 5 seconds: an outage must not use up
 * the retries of every message.</li>
 * <li>What can't get better, such as a payload that can't be converted, becomes a dead
 * letter at once; unless a batch listener did not tell which of its messages is to
 * blame.</li>
 * <li>Everything else is retried, with a delay that grows with the attempts of the
 * message.</li>
 * </ul>
 *
 * @since 0.1.0
 */
public class DefaultPgqueErrorHandler implements PgqueErrorHandler {

	private static final Duration INFRASTRUCTURE_PAUSE = Duration.ofSeconds(5);

	private final BackOffSettings backOff;

	private final RetryRules rules;

	/**
	 * Create an error handler with {@link BackOffSettings#DEFAULT} and no rules.
	 */
	public DefaultPgqueErrorHandler() {
		this(BackOffSettings.DEFAULT);
	}

	/**
	 * Create an error handler without rules.
	 * @param backOff the delays of retries
	 */
	public DefaultPgqueErrorHandler(BackOffSettings backOff) {
		this(backOff, RetryRules.NONE);
	}

	/**
	 * Create an error handler.
	 * @param backOff the delays of retries
	 * @param rules which exceptions are retried always, and which never
	 */
	public DefaultPgqueErrorHandler(BackOffSettings backOff, RetryRules rules) {
		Assert.notNull(backOff, "backOff must not be null");
		Assert.notNull(rules, "rules must not be null");
		this.backOff = backOff;
		this.rules = rules;
	}

	@Override
	public FailureAction handle(Exception failure, ReceivedMessage message, FailureContext context) {
		RetryMessageException retry = ExceptionClassifier.find(failure, RetryMessageException.class);
		if (retry != null) {
			return FailureAction.retry(retry.getDelay());
		}
		if (ExceptionClassifier.find(failure, RejectMessageException.class) != null) {
			return FailureAction.deadLetter();
		}
		Boolean ruled = this.rules.retry(failure);
		if (ruled == null && ExceptionClassifier.isInfrastructure(failure)) {
			return FailureAction.abortBatch(INFRASTRUCTURE_PAUSE);
		}
		boolean hopeless = (ruled != null) ? !ruled : ExceptionClassifier.isHopeless(failure);
		// One of several may be hopeless, and nobody knows which.
		if (hopeless && !context.wholeBatch()) {
			return FailureAction.deadLetter();
		}
		return FailureAction.retry(this.backOff.delayFor(message.deliveryAttempt() - 1));
	}

}
