package io.pgque.core;

import java.util.LinkedHashMap;
import java.util.Map;

import io.pgque.InvalidMessageException;
import io.pgque.client.EventExtras;
import io.pgque.support.header.HeaderCodec;
import io.pgque.support.header.HeaderColumn;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Collects what a message is made of.
 */
final class MessageParts implements SendSpec {

	private final Map<String, String> headers = new LinkedHashMap<>();

	private final @Nullable String[] extras = new @Nullable String[4];

	private @Nullable Object payload;

	private @Nullable String type;

	@Override
	public MessageParts payload(@Nullable Object payload) {
		this.payload = payload;
		return this;
	}

	@Override
	public MessageParts type(String type) {
		Assert.notNull(type, "type must not be null");
		this.type = type;
		return this;
	}

	@Override
	public MessageParts key(@Nullable String key) {
		return extra1(key);
	}

	@Override
	public MessageParts header(String name, String value) {
		Assert.notNull(name, "The name of a header must not be null");
		Assert.notNull(value, () -> "The value of header '" + name + "' must not be null");
		this.headers.put(name, value);
		return this;
	}

	@Override
	public MessageParts headers(Map<String, String> headers) {
		headers.forEach(this::header);
		return this;
	}

	@Override
	public MessageParts extra1(@Nullable String value) {
		return extra(1, value);
	}

	@Override
	public MessageParts extra2(@Nullable String value) {
		return extra(2, value);
	}

	@Override
	public MessageParts extra3(@Nullable String value) {
		return extra(3, value);
	}

	@Override
	public MessageParts extra4(@Nullable String value) {
		return extra(4, value);
	}

	MessageParts extra(int number, @Nullable String value) {
		this.extras[number - 1] = value;
		return this;
	}

	@Nullable Object payload() {
		return this.payload;
	}

	@Nullable String type() {
		return this.type;
	}

	/**
	 * Return the extra columns, checked, with the headers in theirs.
	 */
	EventExtras extras(String queue, HeaderColumn column) {
		this.headers.forEach((name, value) -> {
			PgText.check(queue, "name of header '" + name + "'", name);
			PgText.check(queue, "header '" + name + "'", value);
		});
		for (int number = 1; number <= 4; number++) {
			PgText.check(queue, "extra" + number, this.extras[number - 1]);
		}
		if (!this.headers.isEmpty()) {
			putHeaders(queue, column);
		}
		return new EventExtras(this.extras[0], this.extras[1], this.extras[2], this.extras[3]);
	}

	private void putHeaders(String queue, HeaderColumn column) {
		int number = switch (column) {
			case EXTRA3 -> 3;
			case EXTRA4 -> 4;
			case NONE -> throw new InvalidMessageException("A message for queue '" + queue + "' has headers "
					+ this.headers.keySet() + ", and headers are disabled", "Set pgque.headers.column", null);
		};
		if (this.extras[number - 1] != null) {
			throw new InvalidMessageException(
					"A message for queue '" + queue + "' has headers " + this.headers.keySet() + " and a value of its "
							+ "own in extra" + number + ", which carries the headers",
					"Use another extra column, or set pgque.headers.column", null);
		}
		this.extras[number - 1] = HeaderCodec.encode(this.headers);
	}

}
