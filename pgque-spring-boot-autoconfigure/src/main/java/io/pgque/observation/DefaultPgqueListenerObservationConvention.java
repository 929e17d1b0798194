package io.pgque.observation;

import io.micrometer.common.KeyValues;
import io.pgque.core.PgqueMessage;
import io.pgque.support.ReceivedMessage;

/**
 * The keys of observations of handling: {@code messaging.system},
 * {@code messaging.operation}, {@code messaging.destination.name},
 * {@code messaging.consumer.group.name}, {@code pgque.listener.id} and
 * {@code pgque.event.type} for metrics and traces; {@code messaging.message.id},
 * {@code pgque.batch.id} and {@code pgque.delivery.attempt} for traces.
 *
 * @since 0.1.0
 */
public class DefaultPgqueListenerObservationConvention implements PgqueListenerObservationConvention {

	@Override
	public String getName() {
		return "pgque.listener";
	}

	@Override
	public String getContextualName(PgqueReceiverContext context) {
		return context.getMessages().get(0).queue() + " process";
	}

	@Override
	public KeyValues getLowCardinalityKeyValues(PgqueReceiverContext context) {
		ReceivedMessage first = context.getMessages().get(0);
		return KeyValues.of("messaging.system", "pgque", "messaging.operation", "process", "messaging.destination.name",
				first.queue(), "messaging.consumer.group.name", first.consumer(), "pgque.listener.id",
				context.getListenerId(), "pgque.event.type", type(context, first));
	}

	private static String type(PgqueReceiverContext context, ReceivedMessage first) {
		String type = first.type();
		if (type == null) {
			return "none";
		}
		boolean alike = context.getMessages().stream().allMatch((message) -> type.equals(message.type()));
		return alike ? type : "none";
	}

	@Override
	public KeyValues getHighCardinalityKeyValues(PgqueReceiverContext context) {
		ReceivedMessage first = context.getMessages().get(0);
		KeyValues values = KeyValues.empty();
		if (first instanceof PgqueMessage message) {
			values = values.and("pgque.batch.id", Long.toString(message.batchId()));
		}
		if (context.getMessages().size() == 1) {
			values = values.and("messaging.message.id", Long.toString(first.id()), "pgque.delivery.attempt",
					Integer.toString(first.deliveryAttempt()));
		}
		else {
			values = values.and("messaging.batch.message_count", Integer.toString(context.getMessages().size()));
		}
		return values;
	}

}
