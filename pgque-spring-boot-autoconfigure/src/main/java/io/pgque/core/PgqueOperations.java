package io.pgque.core;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;

import org.springframework.messaging.Message;

/**
 * Sends to log queues, and receives where that is not left to a listener. A send joins
 * the transaction of its caller: called in a {@code @Transactional} method, the message
 * exists when, and only when, that transaction commits. There is no outbox table; the log
 * is the outbox.
 *
 * <p>
 * All methods throw {@link io.pgque.QueueNotFoundException} for an unknown queue,
 * {@link io.pgque.InvalidNameException} for an impossible queue name,
 * {@link io.pgque.InvalidMessageException} for text that PostgreSQL cannot carry, and
 * {@link io.pgque.ReadOnlyTransactionException} inside a read-only transaction.
 *
 * <p>
 * Methods that came after the first release throw {@link UnsupportedOperationException}
 * in an implementation that doesn't have them; {@link PgqueTemplate} has all.
 *
 * @since 0.1.0
 */
public interface PgqueOperations {

	/**
	 * Send a payload; its event type follows from its class. A {@link Message} is sent as
	 * {@link #send(Message)} does, to this queue.
	 * @param queue the queue name
	 * @param payload the payload
	 * @return the message id
	 */
	long send(String queue, Object payload);

	/**
	 * Send a payload with an event type.
	 * @param queue the queue name
	 * @param type the event type
	 * @param payload the payload, or {@code null} to send none
	 * @return the message id
	 */
	long send(String queue, String type, @Nullable Object payload);

	/**
	 * Send a message described part by part.
	 * @param queue the queue name
	 * @param spec describes the message
	 * @return the message id
	 */
	long send(String queue, Consumer<SendSpec> spec);

	/**
	 * Send a Spring message. Its headers name the queue
	 * ({@link io.pgque.support.header.PgqueHeaders#QUEUE}) and may name type, key and
	 * extra columns; its other headers travel with it when their values are strings,
	 * numbers, booleans, characters, enums or UUIDs.
	 * @param message the message
	 * @return the message id
	 */
	long send(Message<?> message);

	/**
	 * Send payloads in one statement; the event type of each follows from its class.
	 * @param queue the queue name
	 * @param payloads the payloads
	 * @return the message ids, in the order of the payloads and ascending
	 */
	List<Long> sendBatch(String queue, Collection<?> payloads);

	/**
	 * Send payloads of one event type in one statement.
	 * @param queue the queue name
	 * @param type the event type
	 * @param payloads the payloads
	 * @return the message ids, in the order of the payloads and ascending
	 */
	List<Long> sendBatch(String queue, String type, Collection<?> payloads);

	/**
	 * Send a message described part by part, and tell what became of it: of interest for
	 * one with an idempotency key.
	 * @param queue the queue name
	 * @param spec describes the message
	 * @return what the send did
	 */
	SendResult sendForResult(String queue, Consumer<SendSpec> spec);

	/**
	 * Send a payload before the transaction commits, together with whatever else is sent
	 * later to that queue; outside a transaction, at once. What is wrong with queue name,
	 * payload or headers is told by this call; that there is no such queue, by the
	 * commit.
	 * @param queue the queue name
	 * @param payload the payload, as of {@link #send(String, Object)}
	 */
	void sendLater(String queue, Object payload);

	/**
	 * Send a payload with an event type before the transaction commits.
	 * @param queue the queue name
	 * @param type the event type
	 * @param payload the payload, or {@code null} to send none
	 * @see #sendLater(String, Object)
	 */
	void sendLater(String queue, String type, @Nullable Object payload);

	/**
	 * Send a message described part by part before the transaction commits; one with an
	 * idempotency key or a time of delivery, at once.
	 * @param queue the queue name
	 * @param spec describes the message
	 * @see #sendLater(String, Object)
	 */
	void sendLater(String queue, Consumer<SendSpec> spec);

	/**
	 * Send an event to the queue that its class names with {@link PgqueEvent}, in the
	 * manner of {@link #sendLater(String, Object)}.
	 * @param event the event
	 * @throws io.pgque.InvalidMessageException when its class names no queue
	 */
	void publish(Object event);

	/**
	 * Cancel a delayed message.
	 * @param queue the queue name
	 * @param id the id that the send returned
	 * @return whether it will not be delivered; otherwise it was delivered or cancelled
	 * before, or is not one of this queue
	 */
	boolean cancelDelayed(String queue, long id);

	/**
	 * Send a payload on another thread, in a transaction of its own. What is wrong with
	 * queue name and payload is told by this call, which also converts the payload;
	 * whatever the database says, by the future. Nothing is retried: a message whose
	 * future failed may be sent or not, when the connection was lost.
	 * @param queue the queue name
	 * @param payload the payload, as of {@link #send(String, Object)}
	 * @return the message id, when it is committed
	 * @throws IllegalStateException when called inside a transaction, which it could not
	 * join; {@link #sendLater(String, Object)} does, and costs as little
	 * @since 0.2.0
	 */
	default CompletableFuture<Long> sendAsync(String queue, Object payload) {
		throw unsupported("sendAsync");
	}

	/**
	 * Send a payload with an event type on another thread, in a transaction of its own.
	 * @param queue the queue name
	 * @param type the event type
	 * @param payload the payload, or {@code null} to send none
	 * @return the message id, when it is committed
	 * @throws IllegalStateException when called inside a transaction
	 * @since 0.2.0
	 * @see #sendAsync(String, Object)
	 */
	default CompletableFuture<Long> sendAsync(String queue, String type, @Nullable Object payload) {
		throw unsupported("sendAsync");
	}

	/**
	 * Send a message described part by part on another thread, in a transaction of its
	 * own.
	 * @param queue the queue name
	 * @param spec describes the message
	 * @return the message id, when it is committed
	 * @throws IllegalStateException when called inside a transaction
	 * @since 0.2.0
	 * @see #sendAsync(String, Object)
	 */
	default CompletableFuture<Long> sendAsync(String queue, Consumer<SendSpec> spec) {
		throw unsupported("sendAsync");
	}

	/**
	 * Receive the consumer's next batch, or the one that is open already; a listener does
	 * all this by itself. Inside a transaction receiving and settling are part of it, and
	 * nobody else receives for the consumer until its end; outside, each commits by
	 * itself, and meanwhile anybody may receive the same batch: the first to close it
	 * settles it.
	 * @param queue the queue name
	 * @param consumer the consumer, which must be subscribed
	 * @return the batch, to be closed; when there is nothing to receive now, one that is
	 * empty, and never {@code null}; the call does not wait for messages
	 * @throws io.pgque.SubscriptionNotFoundException when the consumer is not subscribed,
	 * or is partitioned: then its partitions are, each by itself
	 * @throws io.pgque.PgqueException when a listener receives for the consumer, here or
	 * in another instance
	 * @since 0.2.0
	 */
	default ReceivedBatch receive(String queue, String consumer) {
		throw unsupported("receive");
	}

	/**
	 * Settle the whole of a received batch, also what of it was not looked at. Messages
	 * given back by {@link #nack} come again nevertheless.
	 * @param batchId the batch id
	 * @return whether it was open; when not, nothing was changed
	 * @since 0.2.0
	 */
	default boolean ack(long batchId) {
		throw unsupported("ack");
	}

	/**
	 * Have a message of an open batch come again later, which counts as a failed attempt.
	 * After the retries that its queue allows it becomes a dead letter. Takes effect when
	 * the batch is settled; for many messages, and for delays below a second,
	 * {@link ReceivedBatch#retry} is the better choice.
	 * @param message the message, as it was received
	 * @param delay the time until then, rounded to seconds
	 * @param reason why, kept with a dead letter
	 * @return whether its batch was open; when not, nothing was changed
	 * @since 0.2.0
	 */
	default boolean nack(PgqueMessage message, Duration delay, @Nullable String reason) {
		throw unsupported("nack");
	}

	private UnsupportedOperationException unsupported(String method) {
		return new UnsupportedOperationException(
				getClass().getName() + " does not implement " + method + ". Implement it there, or use PgqueTemplate");
	}

}
