package io.pgque.core;

import java.util.UUID;

import io.pgque.InvalidMessageException;
import io.pgque.support.header.HeaderColumn;
import io.pgque.support.header.PgqueHeaders;
import org.jspecify.annotations.Nullable;

import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;

/**
 * Takes Spring messages apart.
 */
final class SpringMessages {

	private SpringMessages() {
	}

	static String queue(Message<?> message) {
		Object queue = message.getHeaders().get(PgqueHeaders.QUEUE);
		if (queue == null) {
			throw new InvalidMessageException("The message does not say which queue it is for",
					"Set its header '" + PgqueHeaders.QUEUE + "'", null);
		}
		return PgqueNames.requireQueue(queue.toString());
	}

	static MessageParts parts(Message<?> message, HeaderColumn column) {
		MessageParts parts = new MessageParts().payload(message.getPayload());
		message.getHeaders().forEach((name, value) -> {
			switch (name) {
				case PgqueHeaders.TYPE -> parts.type(value.toString());
				case PgqueHeaders.KEY, PgqueHeaders.EXTRA1 -> parts.extra1(value.toString());
				case PgqueHeaders.EXTRA2 -> parts.extra2(value.toString());
				case PgqueHeaders.EXTRA3 -> parts.extra3(value.toString());
				case PgqueHeaders.EXTRA4 -> parts.extra4(value.toString());
				default -> {
					if (column != HeaderColumn.NONE && travels(name, value)) {
						parts.header(name, value.toString());
					}
				}
			}
		});
		return parts;
	}

	/**
	 * What PgQue or Spring set about the message at hand does not describe the one that
	 * is sent.
	 */
	private static boolean travels(String name, @Nullable Object value) {
		boolean ofThisMessage = name.startsWith(PgqueHeaders.PREFIX) || name.equals(MessageHeaders.ID)
				|| name.equals(MessageHeaders.TIMESTAMP);
		return !ofThisMessage && (value instanceof CharSequence || value instanceof Number || value instanceof Boolean
				|| value instanceof Character || value instanceof Enum<?> || value instanceof UUID);
	}

}
