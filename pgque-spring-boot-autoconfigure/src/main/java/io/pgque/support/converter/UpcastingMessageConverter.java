package io.pgque.support.converter;

import java.lang.reflect.Type;
import java.time.OffsetDateTime;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

import io.pgque.support.ReceivedMessage;
import io.pgque.support.header.PgqueHeaders;
import org.jspecify.annotations.Nullable;

import org.springframework.messaging.converter.MessageConversionException;
import org.springframework.util.Assert;

/**
 * Brings payloads to their newest schema version and leaves the rest to another
 * converter. A message says its version in header {@value PgqueHeaders#SCHEMA_VERSION};
 * one that doesn't is of version 1.
 *
 * @since 0.1.0
 */
public class UpcastingMessageConverter implements PgqueMessageConverter {

	private final PgqueMessageConverter delegate;

	private final Map<Step, PayloadUpcaster> upcasters = new HashMap<>();

	/**
	 * Creates a converter.
	 * @param delegate converts
	 * @param upcasters bring payloads forward; one for each event type and version
	 */
	public UpcastingMessageConverter(PgqueMessageConverter delegate, Collection<PayloadUpcaster> upcasters) {
		Assert.notNull(delegate, "delegate must not be null");
		this.delegate = delegate;
		upcasters.forEach((upcaster) -> {
			Assert.isTrue(upcaster.fromVersion() > 0, "fromVersion must be positive");
			PayloadUpcaster other = this.upcasters.put(new Step(upcaster.type(), upcaster.fromVersion()), upcaster);
			Assert.isTrue(other == null, () -> "There are two upcasters of event type '" + upcaster.type()
					+ "' from version " + upcaster.fromVersion() + ": " + other + " and " + upcaster);
		});
	}

	@Override
	public @Nullable String toText(@Nullable Object payload) {
		return this.delegate.toText(payload);
	}

	@Override
	public @Nullable Object fromText(ReceivedMessage message, Type targetType) {
		String type = message.type();
		String payload = message.payload();
		if (type == null || payload == null) {
			return this.delegate.fromText(message, targetType);
		}
		int version = version(message);
		String text = payload;
		PayloadUpcaster upcaster = this.upcasters.get(new Step(type, version));
		while (upcaster != null) {
			text = upcast(upcaster, text, message);
			version++;
			upcaster = this.upcasters.get(new Step(type, version));
		}
		return this.delegate.fromText(text.equals(payload) ? message : new Upcast(message, text), targetType);
	}

	private static int version(ReceivedMessage message) {
		String version = message.headers().get(PgqueHeaders.SCHEMA_VERSION);
		try {
			return (version != null) ? Integer.parseInt(version) : 1;
		}
		catch (NumberFormatException ex) {
			throw new MessageConversionException(
					describe(message) + " has schema version '" + version + "', which is no number", ex);
		}
	}

	private static String upcast(PayloadUpcaster upcaster, String payload, ReceivedMessage message) {
		try {
			return upcaster.upcast(payload, message);
		}
		catch (Exception ex) {
			throw new MessageConversionException(describe(message) + " cannot be brought forward from schema version "
					+ upcaster.fromVersion() + ": " + ex.getMessage(), ex);
		}
	}

	private static String describe(ReceivedMessage message) {
		return "Message " + message.id() + " of queue '" + message.queue() + "' with type '" + message.type() + "'";
	}

	private record Step(String type, int version) {
	}

	/**
	 * A message with another payload than the one that was sent.
	 */
	private record Upcast(ReceivedMessage sent, String payload) implements ReceivedMessage {

		@Override
		public long id() {
			return this.sent.id();
		}

		@Override
		public String queue() {
			return this.sent.queue();
		}

		@Override
		public String consumer() {
			return this.sent.consumer();
		}

		@Override
		public @Nullable String type() {
			return this.sent.type();
		}

		@Override
		public int deliveryAttempt() {
			return this.sent.deliveryAttempt();
		}

		@Override
		public OffsetDateTime createdAt() {
			return this.sent.createdAt();
		}

		@Override
		public Map<String, String> headers() {
			return this.sent.headers();
		}

	}

}
