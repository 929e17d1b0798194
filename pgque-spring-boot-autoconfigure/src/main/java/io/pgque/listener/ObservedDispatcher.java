package io.pgque.listener;

import java.util.List;
import java.util.function.BooleanSupplier;

import io.pgque.core.PgqueMessage;
import io.pgque.listener.HandlingObserver.Handling;
import io.pgque.listener.HandlingObserver.Purpose;
import org.jspecify.annotations.Nullable;

/**
 * A dispatcher that is observed.
 */
final class ObservedDispatcher extends MessageDispatcher {

	private final String listenerId;

	private final HandlingObserver observer;

	/**
	 * The message whose handling is being observed, so that its failure is judged inside.
	 */
	private final ThreadLocal<@Nullable PgqueMessage> current = new ThreadLocal<>();

	ObservedDispatcher(ListenerIdentity identity, EventRoutes routes, UnknownTypePolicy unknownTypePolicy,
			PgqueErrorHandler errorHandler, HandlingObserver observer) {
		super(identity, routes, unknownTypePolicy, errorHandler);
		this.listenerId = identity.listenerId();
		this.observer = observer;
	}

	@Override
	Outcome dispatch(PgqueMessage message, Acknowledgment acknowledgment, BooleanSupplier interrupted) {
		try (Handling handling = this.observer.begin(this.listenerId, List.of(message), Purpose.HANDLE)) {
			this.current.set(message);
			Outcome outcome = super.dispatch(message, acknowledgment, interrupted);
			if (outcome instanceof Outcome.Failed failed) {
				handling.failed(failed.failure());
			}
			return outcome;
		}
		finally {
			this.current.set(null);
		}
	}

	@Override
	@Nullable Exception dispatch(PgqueBatchListener listener, PgqueBatch batch) {
		try (Handling handling = this.observer.begin(this.listenerId, batch.messages(), Purpose.HANDLE)) {
			Exception failure = super.dispatch(listener, batch);
			if (failure != null) {
				handling.failed(failure);
			}
			return failure;
		}
	}

	@Override
	Outcome failed(Exception failure, PgqueMessage message) {
		if (this.current.get() == message) {
			return super.failed(failure, message);
		}
		try (Handling handling = judge(message)) {
			handling.failed(failure);
			return super.failed(failure, message);
		}
	}

	@Override
	Outcome failedTogether(Exception failure, PgqueMessage message, boolean first) {
		try (Handling handling = judge(message)) {
			handling.failed(failure);
			return super.failedTogether(failure, message, first);
		}
	}

	private Handling judge(PgqueMessage message) {
		return this.observer.begin(this.listenerId, List.of(message), Purpose.JUDGE);
	}

}
