package io.pgque.listener;

/**
 * Handles several messages at a time. A large batch comes page by page, so that memory
 * stays bounded; everything is settled together at the end.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public non-sealed interface PgqueBatchListener extends GenericPgqueListener {

	/**
	 * Handle messages. Returning means that those without another outcome are done,
	 * unless the container has {@link AckMode#MANUAL}. What is thrown makes all messages
	 * without an outcome failed messages, except a {@link BatchListenerFailedException},
	 * which names one. No database connection is held and no transaction is open.
	 * @param batch the messages, at least one, and where the outcome of each can be told
	 * @throws Exception when messages could not be handled
	 */
	void onBatch(PgqueBatch batch) throws Exception;

}
