package io.pgque.support.converter;

import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

import io.pgque.support.ReceivedMessage;
import org.jspecify.annotations.Nullable;

import org.springframework.messaging.converter.MessageConversionException;

/**
 * Base of converters that pass text through as it is and leave objects to a JSON mapper.
 * A {@link String} and the UTF-8 text of a {@code byte[]} travel character by character;
 * so does the payload to a receiver that wants a {@link String}, a {@code byte[]} or an
 * {@link Object}.
 *
 * @since 0.1.0
 */
public abstract class AbstractTextMessageConverter implements PgqueMessageConverter {

	/**
	 * For subclasses.
	 */
	protected AbstractTextMessageConverter() {
	}

	@Override
	public final @Nullable String toText(@Nullable Object payload) {
		if (payload == null || payload instanceof String) {
			return (String) payload;
		}
		if (payload instanceof byte[] bytes) {
			return utf8(bytes);
		}
		try {
			return write(payload);
		}
		catch (Exception ex) {
			throw new MessageConversionException(
					"A payload of " + payload.getClass().getName() + " cannot be written as JSON: " + ex.getMessage(),
					ex);
		}
	}

	@Override
	public final @Nullable Object fromText(ReceivedMessage message, Type targetType) {
		String text = message.payload();
		if (text == null || targetType == String.class || targetType == Object.class
				|| targetType == CharSequence.class) {
			return text;
		}
		if (targetType == byte[].class) {
			return text.getBytes(StandardCharsets.UTF_8);
		}
		try {
			return read(text, targetType);
		}
		catch (Exception ex) {
			throw new MessageConversionException(
					"Message " + message.id() + " of queue '" + message.queue() + "' with type '" + message.type()
							+ "' cannot be read as " + targetType.getTypeName() + ": " + ex.getMessage(),
					ex);
		}
	}

	/**
	 * Write an object as JSON.
	 * @param payload the object
	 * @return the JSON text
	 * @throws Exception when it cannot be written
	 */
	protected abstract String write(Object payload) throws Exception;

	/**
	 * Read an object from JSON.
	 * @param text the JSON text
	 * @param targetType the type of the object
	 * @return the object
	 * @throws Exception when it cannot be read
	 */
	protected abstract @Nullable Object read(String text, Type targetType) throws Exception;

	private static String utf8(byte[] bytes) {
		try {
			return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
		}
		catch (CharacterCodingException ex) {
			throw new MessageConversionException("A byte[] payload must be UTF-8 text, since an event carries text: "
					+ "send other binary data in a text form such as Base64", ex);
		}
	}

}
