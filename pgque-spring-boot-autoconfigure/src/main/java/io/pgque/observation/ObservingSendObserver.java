package io.pgque.observation;

import java.util.function.BiConsumer;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.pgque.core.SendObserver;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Makes an observation of each send, and lets the trace travel in the message's headers.
 *
 * @since 0.1.0
 */
public class ObservingSendObserver implements SendObserver {

	private static final PgqueTemplateObservationConvention DEFAULT = new DefaultPgqueTemplateObservationConvention();

	private final ObservationGuard guard = new ObservationGuard("sends");

	private final ObservationRegistry registry;

	private final @Nullable PgqueTemplateObservationConvention convention;

	/**
	 * Creates an observer.
	 * @param registry the registry
	 * @param convention names and keys, or {@code null} for the default
	 */
	public ObservingSendObserver(ObservationRegistry registry,
			@Nullable PgqueTemplateObservationConvention convention) {
		Assert.notNull(registry, "registry must not be null");
		this.registry = registry;
		this.convention = convention;
	}

	@Override
	public Send begin(String queue, @Nullable String type, BiConsumer<String, String> headers) {
		return this.guard.call(() -> {
			PgqueSenderContext context = new PgqueSenderContext(queue, type, headers);
			Observation observation = Observation.createNotStarted(this.convention, DEFAULT, () -> context,
					this.registry);
			return new ObservedSend(new RunningObservation(this.guard, observation).start(), context);
		}, Send.NONE);
	}

	private record ObservedSend(RunningObservation observation, PgqueSenderContext context) implements Send {

		@Override
		public void sent(@Nullable Long messageId) {
			this.context.setMessageId(messageId);
			this.observation.end();
		}

		@Override
		public void failed(Throwable failure) {
			this.observation.error(failure);
			this.observation.end();
		}

	}

}
