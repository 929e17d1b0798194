package io.pgque.listener.adapter;

import io.pgque.core.PgqueEventTypeResolver;
import io.pgque.support.converter.PgqueMessageConverter;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;
import org.springframework.validation.Validator;

/**
 * What handlers need besides their messages.
 *
 * @param converter converts payloads
 * @param eventTypeResolver finds the event type of payload classes
 * @param validator validates payloads, {@code null} where nothing does
 * @since 0.1.0
 */
public record HandlerServices(PgqueMessageConverter converter, PgqueEventTypeResolver eventTypeResolver,
		@Nullable Validator validator) {

	/**
	 * Create services.
	 */
	public HandlerServices {
		Assert.notNull(converter, "converter must not be null");
		Assert.notNull(eventTypeResolver, "eventTypeResolver must not be null");
	}

}
