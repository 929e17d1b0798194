package io.pgque.observation;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;

/**
 * Names send observations and their keys. A bean of this type takes the place of
 * {@link DefaultPgqueTemplateObservationConvention}.
 *
 * @since 0.1.0
 */
public interface PgqueTemplateObservationConvention extends ObservationConvention<PgqueSenderContext> {

	@Override
	default boolean supportsContext(Observation.Context context) {
		return context instanceof PgqueSenderContext;
	}

}
