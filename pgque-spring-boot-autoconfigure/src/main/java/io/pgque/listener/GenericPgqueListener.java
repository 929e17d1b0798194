package io.pgque.listener;

/**
 * What a route leads to: a listener that takes messages one at a time, or one that takes
 * several.
 *
 * @since 0.1.0
 */
public sealed interface GenericPgqueListener permits PgqueMessageListener, PgqueAcknowledgingMessageListener,
		PgqueReplyingMessageListener, PgqueBatchListener {

}
