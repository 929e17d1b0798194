package io.pgque.observation;

import io.micrometer.common.KeyValues;

/**
 * The keys of send observations: {@code messaging.system}, {@code messaging.operation},
 * {@code messaging.destination.name} and {@code pgque.event.type} for metrics and traces,
 * {@code messaging.message.id} for traces.
 *
 * @since 0.1.0
 */
public class DefaultPgqueTemplateObservationConvention implements PgqueTemplateObservationConvention {

	@Override
	public String getName() {
		return "pgque.template";
	}

	@Override
	public String getContextualName(PgqueSenderContext context) {
		return context.getQueue() + " publish";
	}

	@Override
	public KeyValues getLowCardinalityKeyValues(PgqueSenderContext context) {
		String type = context.getType();
		return KeyValues.of("messaging.system", "pgque", "messaging.operation", "publish", "messaging.destination.name",
				context.getQueue(), "pgque.event.type", (type != null) ? type : "none");
	}

	@Override
	public KeyValues getHighCardinalityKeyValues(PgqueSenderContext context) {
		Long messageId = context.getMessageId();
		return (messageId != null) ? KeyValues.of("messaging.message.id", messageId.toString()) : KeyValues.empty();
	}

}
