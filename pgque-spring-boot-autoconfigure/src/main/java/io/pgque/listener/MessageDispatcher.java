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
class MessageDispatcher {

	private static final Log logger = LogFactory.getLog(MessageDispatcher.class);

	private static final int MAX_REPORTED_TYPES = 100;

	private final ListenerIdentity identity;

	private final EventRoutes routes;

	private final boolean batchListener;

	private final UnknownTypePolicy unknownTypePolicy;

	private final PgqueErrorHandler errorHandler;

	private final PgqueErrorHandler fallback = new DefaultPgqueErrorHandler();

	private final Set<String> reportedTypes = ConcurrentHashMap.newKeySet();

	/**
	 * The threads that handlers are running on.
	 */
	private final Set<Thread> handling = ConcurrentHashMap.newKeySet();

	private volatile Interceptors interceptors = Interceptors.NONE;

	private volatile @Nullable ReplySender replySender;

	private volatile HandlerScope scope = HandlerScope.NONE;

	MessageDispatcher(ListenerIdentity identity, EventRoutes routes, UnknownTypePolicy unknownTypePolicy,
			PgqueErrorHandler errorHandler) {
		this.identity = identity;
		this.routes = routes;
		this.batchListener = routes.hasBatchListener();
		this.unknownTypePolicy = unknownTypePolicy;
		this.errorHandler = errorHandler;
	}

	void setScope(HandlerScope scope) {
		this.scope = scope;
	}

	void setInterceptors(Interceptors interceptors) {
		this.interceptors = interceptors;
	}

	void setReplySender(@Nullable ReplySender replySender) {
		this.replySender = replySender;
	}

	/**
	 * Return whether a listener takes several messages at a time.
	 */
	boolean hasBatchListener() {
		return this.batchListener;
	}

	/**
	 * Return the listener that takes several messages at a time, if that is the one that
	 * takes this message.
	 */
	@Nullable PgqueBatchListener batchListener(PgqueMessage message) {
		EventRoutes.Route route = this.routes.find(message.type());
		return (route != null && route.listener() instanceof PgqueBatchListener listener) ? listener : null;
	}

	/**
	 * Look whether a message gets to a handler at all.
	 * @return {@code null} when it does; otherwise its outcome
	 */
	@Nullable Outcome screen(PgqueMessage message) {
		EventRoutes.Route route = this.routes.find(message.type());
		if (route == null) {
			return unknownType(message);
		}
		PgqueMessageFilter filter = route.filter();
		if (filter == null) {
			return null;
		}
		boolean[] accepted = new boolean[1];
		Exception failure = call(() -> accepted[0] = filter.accept(message), message);
		if (failure != null) {
			return failed(failure, message);
		}
		return accepted[0] ? null : Outcome.SKIPPED;
	}

	/**
	 * Let a message be handled by a listener that takes one at a time. Screen it before.
	 * @param acknowledgment through which the handler may acknowledge
	 * @param interrupted whether the container has interrupted the handler; what that
	 * throws then is no failure
	 * @return what came of it; only a {@link VirtualMachineError} is thrown
	 */
	Outcome dispatch(PgqueMessage message, Acknowledgment acknowledgment, BooleanSupplier interrupted) {
		EventRoutes.Route route = this.routes.find(message.type());
		Assert.state(route != null, "No handler takes this type");
		PgqueReply[] reply = new PgqueReply[1];
		Exception failure = call(() -> this.scope.run(message, () -> reply[0] = this.interceptors.call(message,
				() -> call(route.listener(), message, acknowledgment))), message);
		if (failure == null) {
			return handled(reply[0]);
		}
		return interrupted.getAsBoolean() ? Outcome.INTERRUPTED : failed(failure, message);
	}

	private Outcome handled(@Nullable PgqueReply reply) {
		if (reply == null) {
			return Outcome.HANDLED;
		}
		Assert.state(this.replySender != null, "Nothing sends replies");
		return new Outcome.Handled(new Outcome.PreparedReply(reply, this.replySender));
	}

	private static @Nullable PgqueReply call(GenericPgqueListener listener, PgqueMessage message,
			Acknowledgment acknowledgment) throws Exception {
		if (listener instanceof PgqueReplyingMessageListener replying) {
			return replying.onMessage(message, acknowledgment);
		}
		if (listener instanceof PgqueAcknowledgingMessageListener acknowledging) {
			acknowledging.onMessage(message, acknowledgment);
		}
		else {
			((PgqueMessageListener) listener).onMessage(message);
		}
		return null;
	}

	/**
	 * Let messages be handled together. Screen them before.
	 * @return what the listener has thrown, {@code null} when it returned; only a
	 * {@link VirtualMachineError} is thrown
	 */
	@Nullable Exception dispatch(PgqueBatchListener listener, PgqueBatch batch) {
		PgqueMessage first = batch.messages().get(0);
		return call(() -> this.scope.run(first, () -> this.interceptors.call(batch.messages(), () -> {
			listener.onBatch(batch);
			return null;
		})), first);
	}

	/**
	 * Return whether the caller has been called by a handler: it can't wait for the
	 * handler's end.
	 */
	boolean isCalledByHandler() {
		return this.handling.contains(Thread.currentThread());
	}

	/**
	 * Return whether handlers run, and all of them wait for something to stop.
	 */
	boolean isHeldByStoppingHandlers() {
		return StoppingHandlers.areAll(this.handling);
	}

	private @Nullable Exception call(HandlerScope.Call handler, PgqueMessage message) {
		Thread thread = Thread.currentThread();
		this.handling.add(thread);
		try {
			handler.run();
			return null;
		}
		catch (Exception ex) {
			return ex;
		}
		catch (StackOverflowError ex) {
			// The message's own doing, say by its depth; the stack is whole again here.
			return wrap(ex, message);
		}
		catch (VirtualMachineError ex) {
			throw ex;
		}
		catch (Throwable ex) {
			return wrap(ex, message);
		}
		finally {
			this.handling.remove(thread);
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

	/**
	 * Ask the error handler about a message.
	 */
	Outcome failed(Exception failure, PgqueMessage message) {
		return new Outcome.Failed(failure, action(failure, message, false), false, false);
	}

	/**
	 * Ask the error handler about one of several messages that failed together.
	 * @param first whether it is the first of them
	 */
	Outcome failedTogether(Exception failure, PgqueMessage message, boolean first) {
		return new Outcome.Failed(failure, action(failure, message, true), true, !first);
	}

	private FailureAction action(Exception failure, PgqueMessage message, boolean wholeBatch) {
		FailureContext context = new FailureContext(this.identity.listenerId(), message.batchId(), wholeBatch);
		try {
			FailureAction action = this.errorHandler.handle(failure, message, context);
			// A forgotten branch must not settle the message.
			Assert.state(action != null, "It returned null instead of an action");
			return action;
		}
		catch (VirtualMachineError ex) {
			throw ex;
		}
		catch (Throwable ex) {
			logger.error("The error handler of " + this.identity + " failed on message " + message.id()
					+ "; the default decides", ex);
			return this.fallback.handle(failure, message, context);
		}
	}

}
