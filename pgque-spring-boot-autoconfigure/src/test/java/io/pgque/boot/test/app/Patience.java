package io.pgque.boot.test.app;

import io.pgque.listener.DefaultPgqueErrorHandler;
import io.pgque.listener.FailureAction;
import io.pgque.listener.FailureContext;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.support.ReceivedMessage;

import org.springframework.stereotype.Component;

/**
 * Belongs to all listeners.
 */
@Component
class Patience implements PgqueErrorHandler {

	private final PgqueErrorHandler delegate = new DefaultPgqueErrorHandler();

	@Override
	public FailureAction handle(Exception failure, ReceivedMessage message, FailureContext context) {
		return this.delegate.handle(failure, message, context);
	}

}
