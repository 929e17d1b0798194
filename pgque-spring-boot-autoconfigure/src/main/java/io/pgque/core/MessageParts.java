package io.pgque.core;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

import io.pgque.InvalidMessageException;
import io.pgque.client.EventExtras;
import io.pgque.support.header.HeaderCodec;
import io.pgque.support.header.HeaderColumn;
import io.pgque.support.header.PgqueHeaders;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;
import org.springframework.util.ClassUtils;

/**
 * Collects what a message is made of.
 */
final class MessageParts implements SendSpec {

	/**
	 * How long an idempotency key counts, as in the engine.
	 */
	private static final Duration DEFAULT_WINDOW = Duration.ofHours(1);

	private final Map<String, String> headers = new LinkedHashMap<>();

	private final @Nullable String[] extras = new @Nullable String[4];

	private @Nullable Object payload;

	private @Nullable String type;

	private OutgoingEvent.@Nullable Idempotency idempotency;

	private OutgoingEvent.@Nullable Delivery delivery;

	private final Map<String, String> observed = new LinkedHashMap<>();

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
	public MessageParts idempotencyKey(String key) {
		return idempotencyKey(key, DEFAULT_WINDOW);
	}

	@Override
	public MessageParts idempotencyKey(String key, Duration window) {
		Assert.hasText(key, "The idempotency key must have text");
		Assert.isTrue(!window.isNegative() && !window.isZero(), "The window of the idempotency key must be positive");
		this.idempotency = new OutgoingEvent.Idempotency(key, window);
		return this;
	}

	@Override
	public MessageParts deliverAt(Instant time) {
		Assert.notNull(time, "time must not be null");
		this.delivery = new OutgoingEvent.At(time);
		return this;
	}

	@Override
	public MessageParts deliverAfter(Duration delay) {
		Assert.notNull(delay, "delay must not be null");
		this.delivery = new OutgoingEvent.After(delay);
		return this;
	}

	/**
	 * Add the schema version of the payload, unless the application has said it.
	 */
	void version() {
		Object object = this.payload;
		int version = (object != null) ? PgqueEvents.version(ClassUtils.getUserClass(object)) : 1;
		if (version > 1) {
			this.headers.putIfAbsent(PgqueHeaders.SCHEMA_VERSION, Integer.toString(version));
		}
	}

	/**
	 * Add a header that is not the application's: one of the same name takes its place,
	 * and it is dropped where there is no room for headers.
	 */
	void observed(String name, String value) {
		this.observed.put(name, value);
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

	OutgoingEvent.@Nullable Idempotency idempotency(String queue) {
		OutgoingEvent.Idempotency key = this.idempotency;
		if (key == null) {
			return null;
		}
		PgText.check(queue, "idempotency key", key.key());
		if (this.delivery != null) {
			throw new InvalidMessageException(
					"A message for queue '" + queue + "' has an idempotency key and a time of delivery",
					"Use one of both: a delayed message is not compared with others", null);
		}
		String own = this.extras[1];
		if (own != null && !own.equals(key.key())) {
			throw new InvalidMessageException("A message for queue '" + queue
					+ "' has an idempotency key and a value of its own in extra2, " + "which carries the key",
					"Use another extra column", null);
		}
		return key;
	}

	OutgoingEvent.@Nullable Delivery delivery() {
		return this.delivery;
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
		else if (!this.observed.isEmpty() && column != HeaderColumn.NONE && this.extras[number(column) - 1] == null) {
			this.extras[number(column) - 1] = HeaderCodec.encode(this.observed);
		}
		return new EventExtras(this.extras[0], this.extras[1], this.extras[2], this.extras[3]);
	}

	private static int number(HeaderColumn column) {
		return (column == HeaderColumn.EXTRA3) ? 3 : 4;
	}

	private void putHeaders(String queue, HeaderColumn column) {
		int number = switch (column) {
			case EXTRA3, EXTRA4 -> number(column);
			case NONE -> throw new InvalidMessageException("A message for queue '" + queue + "' has headers "
					+ this.headers.keySet() + ", and headers are disabled", "Set pgque.headers.column", null);
		};
		if (this.extras[number - 1] != null) {
			throw new InvalidMessageException(
					"A message for queue '" + queue + "' has headers " + this.headers.keySet() + " and a value of its "
							+ "own in extra" + number + ", which carries the headers",
					"Use another extra column, or set pgque.headers.column", null);
		}
		Map<String, String> all = new LinkedHashMap<>(this.headers);
		all.putAll(this.observed);
		this.extras[number - 1] = HeaderCodec.encode(all);
	}

}
