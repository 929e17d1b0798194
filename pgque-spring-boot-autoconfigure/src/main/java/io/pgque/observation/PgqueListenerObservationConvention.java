package io.pgque.observation;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;

/**
 * Names observations of handling and their keys. A bean of this type takes the place of
 * {@link DefaultPgqueListenerObservationConvention}.
 *
 * @since 0.1.0
 */
public interface PgqueListenerObservationConvention extends ObservationConvention<PgqueReceiverContext> {

	@Override
	default boolean supportsContext(Observation.Context context) {
		return context instanceof PgqueReceiverContext;
	}

}
