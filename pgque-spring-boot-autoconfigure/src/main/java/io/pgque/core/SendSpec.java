package io.pgque.core;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

import org.jspecify.annotations.Nullable;

/**
 * Describes one message to send, part by part.
 *
 * @since 0.1.0
 */
public interface SendSpec {

	/**
	 * Set the payload.
	 * @param payload the payload, or {@code null} to send none
	 * @return this
	 */
	SendSpec payload(@Nullable Object payload);

	/**
	 * Set the event type; when not set it follows from the payload.
	 * @param type the event type
	 * @return this
	 */
	SendSpec type(String type);

	/**
	 * Set the message key, which takes the first extra column.
	 * @param key the key
	 * @return this
	 */
	SendSpec key(@Nullable String key);

	/**
	 * Set a key under which the message is sent once: a later send to the queue under the
	 * same key is dropped while the key counts, for an hour. Name the effect, not the
	 * thing: {@code order-7-paid} rather than {@code order-7}, or the next message about
	 * the thing is dropped too. The key takes the second extra column.
	 * @param key the key
	 * @return this
	 */
	SendSpec idempotencyKey(String key);

	/**
	 * Set a key under which the message is sent once, and how long it counts.
	 * @param key the key, as of {@link #idempotencyKey(String)}
	 * @param window how long it counts, from the start of the transaction; positive
	 * @return this
	 */
	SendSpec idempotencyKey(String key, Duration window);

	/**
	 * Have the message delivered at a time, if that is still to come. Cannot be combined
	 * with an idempotency key.
	 * @param time the time; the database's clock decides
	 * @return this
	 */
	SendSpec deliverAt(Instant time);

	/**
	 * Have the message delivered after a delay. Cannot be combined with an idempotency
	 * key.
	 * @param delay the time from now, by the database's clock
	 * @return this
	 */
	SendSpec deliverAfter(Duration delay);

	/**
	 * Add a header.
	 * @param name the name of the header
	 * @param value its value
	 * @return this
	 */
	SendSpec header(String name, String value);

	/**
	 * Add headers.
	 * @param headers names and values
	 * @return this
	 */
	SendSpec headers(Map<String, String> headers);

	/**
	 * Set the first extra column, the same that {@link #key(String)} sets.
	 * @param value its value
	 * @return this
	 */
	SendSpec extra1(@Nullable String value);

	/**
	 * Set the second extra column.
	 * @param value its value
	 * @return this
	 */
	SendSpec extra2(@Nullable String value);

	/**
	 * Set the third extra column.
	 * @param value its value
	 * @return this
	 */
	SendSpec extra3(@Nullable String value);

	/**
	 * Set the fourth extra column, unless headers go there.
	 * @param value its value
	 * @return this
	 */
	SendSpec extra4(@Nullable String value);

}
