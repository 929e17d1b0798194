package io.pgque.support.header;

/**
 * Names of the headers that PgQue sets on, or reads from, a Spring message.
 *
 * @since 0.1.0
 */
public final class PgqueHeaders {

	/**
	 * What the names of all of these headers begin with.
	 */
	public static final String PREFIX = "pgque_";

	/**
	 * The name of the queue. Type: {@link String}.
	 */
	public static final String QUEUE = PREFIX + "queue";

	/**
	 * The name of the consumer that received the message. Type: {@link String}.
	 */
	public static final String CONSUMER = PREFIX + "consumer";

	/**
	 * The event type. Type: {@link String}.
	 */
	public static final String TYPE = PREFIX + "type";

	/**
	 * The message id. Type: {@link Long}.
	 */
	public static final String MESSAGE_ID = PREFIX + "messageId";

	/**
	 * The id of the batch that the message was received in. Type: {@link Long}.
	 */
	public static final String BATCH_ID = PREFIX + "batchId";

	/**
	 * How often the message has been delivered, this time included. Type:
	 * {@link Integer}.
	 */
	public static final String DELIVERY_ATTEMPT = PREFIX + "deliveryAttempt";

	/**
	 * When the message was sent, by the database's clock. Type:
	 * {@link java.time.OffsetDateTime}.
	 */
	public static final String CREATED_AT = PREFIX + "createdAt";

	/**
	 * The message key, carried by the event's first extra column. Type: {@link String}.
	 */
	public static final String KEY = PREFIX + "key";

	/**
	 * The first extra column of the event. Type: {@link String}.
	 */
	public static final String EXTRA1 = PREFIX + "extra1";

	/**
	 * The second extra column of the event. Type: {@link String}.
	 */
	public static final String EXTRA2 = PREFIX + "extra2";

	/**
	 * The third extra column of the event. Type: {@link String}.
	 */
	public static final String EXTRA3 = PREFIX + "extra3";

	/**
	 * The fourth extra column of the event. Type: {@link String}.
	 */
	public static final String EXTRA4 = PREFIX + "extra4";

	/**
	 * The schema version of the payload, which travels with the message; a message
	 * without it is of version 1.
	 */
	public static final String SCHEMA_VERSION = "schema-version";

	private PgqueHeaders() {
	}

}
