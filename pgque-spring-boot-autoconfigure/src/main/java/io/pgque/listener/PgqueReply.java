package io.pgque.listener;

import java.util.Map;

import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * What a handler answers to a message. It is sent in the transaction that settles the
 * message: either both happen or neither.
 *
 * @param queue the queue it goes to
 * @param type its event type
 * @param payload its payload, converted already
 * @param key its key, {@code null} for none
 * @param headers its headers
 * @since 0.1.0
 */
public record PgqueReply(String queue, String type, @Nullable String payload, @Nullable String key,
		Map<String, String> headers) {

	/**
	 * Create a reply.
	 */
	public PgqueReply {
		Assert.hasText(queue, "queue must not be empty");
		Assert.notNull(type, "type must not be null");
		headers = Map.copyOf(headers);
	}

}
