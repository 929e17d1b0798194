package io.pgque.client;

import java.time.Duration;

import javax.sql.DataSource;

/**
 * The log engine's SQL calls about messages that were handled. Each method sends one
 * statement, which joins the caller's Spring transaction or commits by itself.
 *
 * @since 0.1.0
 */
public final class InboxClient {

	private final Statements statements;

	/**
	 * Creates a client.
	 * @param dataSource leads to the database
	 */
	public InboxClient(DataSource dataSource) {
		this.statements = new Statements(dataSource, null);
	}

	/**
	 * Note that a consumer has handled a message.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param messageId the message id
	 * @return whether it was noted now; otherwise it was handled before
	 */
	public boolean add(String queue, String consumer, long messageId) {
		return this.statements.query(queue, "select pgque.inbox_add(?, ?, ?)::int", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setLong(3, messageId);
		}, Rows::singleInt) == 1;
	}

	/**
	 * Set how long it is remembered what was handled.
	 * @param retention the shortest time
	 */
	public void setRetention(Duration retention) {
		this.statements.query(null, "select pgque.set_inbox_retention(?::interval)::text",
				(statement) -> statement.setString(1, Intervals.text(retention)), Rows::singleString);
	}

}
