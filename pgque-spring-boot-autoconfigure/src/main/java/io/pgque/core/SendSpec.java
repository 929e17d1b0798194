package io.pgque.core;

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
