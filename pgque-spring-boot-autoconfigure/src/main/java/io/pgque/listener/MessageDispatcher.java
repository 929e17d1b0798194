package io.pgque.listener;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

import io.pgque.core.PgqueMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Brings a message to its handler, and a failure to the error handler.
 */
final class MessageDispatcher {

	private static final Log logger = LogFactory.getLog(MessageDispatcher.class);

	private static final int MAX_REPORTED_TYPES = 100;

	private final ListenerIdentity identity;

	private final EventRoutes routes;

	private final UnknownTypePolicy unknownTypePolicy;

	private final PgqueErrorHandler errorHandler;

	private final PgqueErrorHandler fallback = new DefaultPgqueErrorHandler();

	private final Set<String> reportedTypes = ConcurrentHashMap.newKeySet();

	MessageDispatcher(ListenerIdentity identity, EventRoutes routes, UnknownTypePolicy unknownTypePolicy,
			PgqueErrorHandler errorHandler) {
		this.identity = identity;
		this.routes = routes;
		this.unknownTypePolicy = unknownTypePolicy;
		this.errorHandler = errorHandler;
	}

	/**
	 * Let a message be handled.
	 * @param interrupted whether the container has interrupted the handler; what that
	 * throws then is no failure
	 * @return what came of it; only a {@link VirtualMachineError} is thrown
	 */
	Outcome dispatch(PgqueMessage message, BooleanSupplier interrupted) {
		EventRoutes.Route route = this.routes.find(message.type());
		if (route == null) {
			return unknownType(message);
		}
		try {
			route.listener().onMessage(message);
			return Outcome.HANDLED;
		}
		catch (Exception ex) {
			return interrupted.getAsBoolean() ? Outcome.INTERRUPTED : failed(ex, message);
		}
		catch (StackOverflowError ex) {
			// The message's own doing, say by its depth; the stack is whole again here.
			return failed(wrap(ex, message), message);
		}
		catch (VirtualMachineError ex) {
			throw ex;
		}
		catch (Throwable ex) {
			return interrupted.getAsBoolean() ? Outcome.INTERRUPTED : failed(wrap(ex, message), message);
		}
	}

	private Exception wrap(Throwable failure, PgqueMessage message) {
		return new PgqueListenerExecutionFailedException(this.identity.listenerId(), message.queue(),
				message.consumer(), message.id(), failure);
	}

	private Outcome unknownType(PgqueMessage message) {
		if (this.routes.isFilter()) {
			return Outcome.SKIPPED;
		}
		UnknownEventTypeException failure = new UnknownEventTypeException(message.type(), message.queue(),
				message.consumer());
		return switch (this.unknownTypePolicy) {
			case NACK -> {
				reportOnce(message.type(), "such messages are retried and end as dead letters");
				yield failed(failure, message);
			}
			case SKIP -> {
				reportOnce(message.type(), "such messages are skipped");
				yield Outcome.SKIPPED;
			}
			case FAIL -> new Outcome.Refused(failure);
		};
	}

	private void reportOnce(@Nullable String type, String consequence) {
		String key = String.valueOf(type);
		if (this.reportedTypes.size() < MAX_REPORTED_TYPES && this.reportedTypes.add(key)) {
			logger.warn("No handler of " + this.identity + " takes event type '" + key + "': " + consequence
					+ " (unknown-type-policy " + this.unknownTypePolicy.name().toLowerCase(java.util.Locale.ROOT)
					+ "). This is told once for each type");
		}
	}

	private Outcome failed(Exception failure, PgqueMessage message) {
		FailureContext context = new FailureContext(this.identity.listenerId(), message.batchId());
		try {
			FailureAction action = this.errorHandler.handle(failure, message, context);
			// A forgotten branch must not settle the message.
			Assert.state(action != null, "It returned null instead of an action");
			return new Outcome.Failed(failure, action);
		}
		catch (VirtualMachineError ex) {
			throw ex;
		}
		catch (Throwable ex) {
			logger.error("The error handler of " + this.identity + " failed on message " + message.id()
					+ "; the default decides", ex);
			return new Outcome.Failed(failure, this.fallback.handle(failure, message, context));
		}
	}

}
