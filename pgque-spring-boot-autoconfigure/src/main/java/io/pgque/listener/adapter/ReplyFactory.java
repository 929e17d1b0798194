package io.pgque.listener.adapter;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

import io.pgque.core.PgqueMessage;
import io.pgque.listener.PgqueReply;
import io.pgque.support.header.PgqueHeaders;
import org.jspecify.annotations.Nullable;

import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.converter.MessageConversionException;

/**
 * Makes a reply of what a handler method returns. It is converted at once, so that what
 * can't be is a failure of its message and not of the whole batch.
 */
final class ReplyFactory {

	private final HandlerServices services;

	private final String queue;

	ReplyFactory(HandlerServices services, String queue) {
		this.services = services;
		this.queue = queue;
	}

	@Nullable PgqueReply create(@Nullable Object returned, PgqueMessage message) {
		if (returned == null) {
			return null;
		}
		if (returned instanceof Message<?> reply) {
			MessageHeaders headers = reply.getHeaders();
			return create(reply.getPayload(), headers.get(PgqueHeaders.TYPE), headers.get(PgqueHeaders.KEY),
					travelling(headers), message);
		}
		return create(returned, null, null, Map.of(), message);
	}

	private PgqueReply create(Object payload, @Nullable Object type, @Nullable Object key, Map<String, String> headers,
			PgqueMessage message) {
		String text = this.services.converter().toText(payload);
		String typeText = (type != null) ? type.toString()
				: this.services.eventTypeResolver().resolve(payload.getClass());
		String keyText = (key != null) ? key.toString() : null;
		check(text, "payload", message);
		check(typeText, "type", message);
		check(keyText, "key", message);
		headers.values().forEach((value) -> check(value, "header", message));
		return new PgqueReply(this.queue, typeText, text, keyText, headers);
	}

	private static Map<String, String> travelling(MessageHeaders headers) {
		Map<String, String> texts = new LinkedHashMap<>();
		headers.forEach((name, value) -> {
			// What PgQue or Spring set is about another message.
			boolean own = !name.startsWith(PgqueHeaders.PREFIX) && !name.equals(MessageHeaders.ID)
					&& !name.equals(MessageHeaders.TIMESTAMP);
			if (own && (value instanceof CharSequence || value instanceof Number || value instanceof Boolean)) {
				texts.put(name, value.toString());
			}
		});
		return texts;
	}

	private void check(@Nullable String text, String part, PgqueMessage message) {
		if (text != null && (text.indexOf('\0') >= 0 || !StandardCharsets.UTF_8.newEncoder().canEncode(text))) {
			throw new MessageConversionException("The " + part + " of the reply to message " + message.id()
					+ " for queue '" + this.queue + "' has a NUL character or half a surrogate pair, which "
					+ "PostgreSQL's text cannot store");
		}
	}

}
