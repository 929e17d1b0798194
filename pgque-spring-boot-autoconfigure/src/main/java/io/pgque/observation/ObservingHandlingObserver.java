package io.pgque.observation;

import java.util.List;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.pgque.listener.HandlingObserver;
import io.pgque.support.ReceivedMessage;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Makes an observation of each message that is handled, in the trace that came with it;
 * of messages that are handled together, in the trace of the first.
 *
 * @since 0.1.0
 */
public class ObservingHandlingObserver implements HandlingObserver {

	private static final PgqueListenerObservationConvention DEFAULT = new DefaultPgqueListenerObservationConvention();

	private static final PgqueListenerObservationConvention JUDGE = new DefaultPgqueListenerObservationConvention() {

		@Override
		public String getName() {
			return "pgque.listener.error";
		}

		@Override
		public String getContextualName(PgqueReceiverContext context) {
			return context.getMessages().get(0).queue() + " error";
		}

	};

	private final ObservationGuard guard = new ObservationGuard("the handling of messages");

	private final ObservationRegistry registry;

	private final @Nullable PgqueListenerObservationConvention convention;

	/**
	 * Creates an observer.
	 * @param registry the registry
	 * @param convention names and keys, or {@code null} for the default
	 */
	public ObservingHandlingObserver(ObservationRegistry registry,
			@Nullable PgqueListenerObservationConvention convention) {
		Assert.notNull(registry, "registry must not be null");
		this.registry = registry;
		this.convention = convention;
	}

	@Override
	public Handling begin(String listenerId, List<? extends ReceivedMessage> messages, Purpose purpose) {
		return this.guard.call(() -> {
			PgqueReceiverContext context = new PgqueReceiverContext(listenerId, messages);
			boolean judge = purpose == Purpose.JUDGE;
			Observation observation = Observation.createNotStarted(judge ? JUDGE : this.convention,
					judge ? JUDGE : DEFAULT, () -> context, this.registry);
			return new ObservedHandling(new RunningObservation(this.guard, observation).start());
		}, Handling.NONE);
	}

	private record ObservedHandling(RunningObservation observation) implements Handling {

		@Override
		public void failed(Throwable failure) {
			this.observation.error(failure);
		}

		@Override
		public void close() {
			this.observation.end();
		}

	}

}
