package io.pgque.core;

import java.time.Duration;
import java.time.Instant;

import io.pgque.client.EventExtras;
import org.jspecify.annotations.Nullable;

/**
 * A message ready to be written.
 *
 * @param queue the queue name
 * @param type the event type
 * @param data the payload text
 * @param extras the extra columns
 * @param idempotency its key and how long that counts, if it has one
 * @param delivery when it is delivered, if not at once
 */
record OutgoingEvent(String queue, String type, @Nullable String data, EventExtras extras,
		@Nullable Idempotency idempotency, @Nullable Delivery delivery) {

	/**
	 * Whether it can be written with others in one statement.
	 */
	boolean isPlain() {
		return this.idempotency == null && this.delivery == null;
	}

	int size() {
		return (this.data != null) ? this.data.length() : 0;
	}

	/**
	 * A key under which a message is sent once.
	 *
	 * @param key the key
	 * @param window how long it counts
	 */
	record Idempotency(String key, Duration window) {
	}

	/**
	 * When a message is delivered.
	 */
	sealed interface Delivery {

	}

	/**
	 * At a time.
	 *
	 * @param time the time
	 */
	record At(Instant time) implements Delivery {
	}

	/**
	 * After a delay.
	 *
	 * @param delay the delay, counted by the database's clock
	 */
	record After(Duration delay) implements Delivery {
	}

}
