package io.pgque.support.converter;

import java.lang.reflect.Type;

import io.pgque.support.ReceivedMessage;
import org.jspecify.annotations.Nullable;

import org.springframework.messaging.converter.MessageConversionException;

/**
 * Converts between payload objects and the text that an event carries.
 *
 * @since 0.1.0
 */
public interface PgqueMessageConverter {

	/**
	 * Convert a payload to text. A {@link String} stays what it is.
	 * @param payload the payload, or {@code null}
	 * @return the text, {@code null} when there is no payload
	 * @throws MessageConversionException when the payload cannot be converted
	 */
	@Nullable String toText(@Nullable Object payload);

	/**
	 * Convert the payload of a received message.
	 * @param message the message
	 * @param targetType the type that the receiver wants
	 * @return the payload, {@code null} when the message has none
	 * @throws MessageConversionException when the payload does not fit; names the
	 * message, its queue and the target type
	 */
	@Nullable Object fromText(ReceivedMessage message, Type targetType);

}
