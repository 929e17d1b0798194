package io.pgque.listener.adapter;

import java.util.HashMap;
import java.util.Map;

import io.pgque.core.PgqueMessage;
import io.pgque.listener.Acknowledgment;
import io.pgque.support.header.PgqueHeaders;
import org.jspecify.annotations.Nullable;

import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.support.GenericMessage;
import org.springframework.util.Assert;

/**
 * A message on its way into a handler method. Its form as a Spring message is made when
 * an argument needs it.
 */
final class HandledMessage {

	private final PgqueMessage message;

	private final @Nullable Acknowledgment acknowledgment;

	private @Nullable Message<?> springMessage;

	HandledMessage(PgqueMessage message, @Nullable Acknowledgment acknowledgment) {
		this.message = message;
		this.acknowledgment = acknowledgment;
	}

	PgqueMessage message() {
		return this.message;
	}

	Acknowledgment acknowledgment() {
		Assert.state(this.acknowledgment != null, "Nobody acknowledges here");
		return this.acknowledgment;
	}

	/**
	 * Return the message with its text as payload, or an empty text when it has none.
	 */
	Message<?> springMessage() {
		Message<?> result = this.springMessage;
		if (result == null) {
			String payload = this.message.payload();
			result = withPayload((payload != null) ? payload : "");
			this.springMessage = result;
		}
		return result;
	}

	<T> Message<T> withPayload(T payload) {
		return new GenericMessage<>(payload, new Headers(this.message));
	}

	/**
	 * The application's headers and our own; the time stamp is that of sending.
	 */
	private static final class Headers extends MessageHeaders {

		private static final long serialVersionUID = 1L;

		private Headers(PgqueMessage message) {
			super(values(message), null, message.createdAt().toInstant().toEpochMilli());
		}

		private static Map<String, Object> values(PgqueMessage message) {
			Map<String, Object> values = new HashMap<>(message.headers());
			values.put(PgqueHeaders.QUEUE, message.queue());
			values.put(PgqueHeaders.CONSUMER, message.consumer());
			values.put(PgqueHeaders.MESSAGE_ID, message.id());
			values.put(PgqueHeaders.BATCH_ID, message.batchId());
			values.put(PgqueHeaders.DELIVERY_ATTEMPT, message.deliveryAttempt());
			values.put(PgqueHeaders.CREATED_AT, message.createdAt());
			put(values, PgqueHeaders.TYPE, message.type());
			put(values, PgqueHeaders.KEY, message.key());
			put(values, PgqueHeaders.EXTRA1, message.extra1());
			put(values, PgqueHeaders.EXTRA2, message.extra2());
			put(values, PgqueHeaders.EXTRA3, message.extra3());
			put(values, PgqueHeaders.EXTRA4, message.extra4());
			return values;
		}

		private static void put(Map<String, Object> values, String name, @Nullable String value) {
			if (value != null) {
				values.put(name, value);
			}
		}

	}

}
