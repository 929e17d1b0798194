package io.pgque.core;

import java.time.Duration;

import io.pgque.MissingPrivilegeException;
import io.pgque.TransactionRequiredException;
import io.pgque.client.InboxClient;
import io.pgque.support.ReceivedMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.Assert;

/**
 * Remembers which messages were handled, in the transaction that did what they are about:
 * whatever happens, the effects of a message are there once.
 *
 * <pre class="code">
 * &#064;Transactional
 * &#064;PgqueListener(queue = "orders", consumer = "billing")
 * public void charge(OrderPlaced event, PgqueMessage message) {
 * 	if (this.inbox.isNew(message)) {
 * 		...
 * 	}
 * }
 * </pre>
 *
 * <p>
 * A message keeps its id over retries, also when it is redelivered as a dead letter; what
 * is sent again, by a replay to all consumers or by its sender, is another message. The
 * transactions have to be READ COMMITTED.
 *
 * @since 0.1.0
 */
public class PgqueInbox implements SmartInitializingSingleton {

	private static final Log logger = LogFactory.getLog(PgqueInbox.class);

	private final InboxClient client;

	private final Duration retention;

	/**
	 * Create an inbox.
	 * @param client calls the engine on the data source that handlers write to
	 * @param retention how long handled messages are remembered, at least
	 */
	public PgqueInbox(InboxClient client, Duration retention) {
		Assert.notNull(client, "client must not be null");
		Assert.isTrue(!retention.isNegative() && !retention.isZero(), () -> "retention must be positive: " + retention);
		this.client = client;
		this.retention = retention;
	}

	/**
	 * Tell the engine how long to remember. The last one who says it counts.
	 */
	@Override
	public void afterSingletonsInstantiated() {
		try {
			this.client.setRetention(this.retention);
		}
		catch (MissingPrivilegeException ex) {
			logger.warn("The inbox keeps the retention that it has: " + ex.getMessage());
		}
	}

	/**
	 * Note that a message is being handled. If the transaction rolls back, so does the
	 * note. When another transaction handles the same message, this one waits for its
	 * end.
	 * @param message the message
	 * @return whether it is new; {@code false} when it was handled before, and there is
	 * nothing left to do
	 * @throws TransactionRequiredException when there is no transaction that the effects
	 * of the message could belong to
	 */
	public boolean isNew(ReceivedMessage message) {
		Assert.notNull(message, "message must not be null");
		if (!TransactionSynchronizationManager.isActualTransactionActive()) {
			throw new TransactionRequiredException(message.queue(),
					"Message " + message.id() + " of queue '" + message.queue()
							+ "' can't be noted as handled outside of the transaction that handles it",
					"Make the handler @Transactional", null);
		}
		return this.client.add(message.queue(), message.consumer(), message.id());
	}

}
