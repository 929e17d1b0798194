package io.pgque.client;

import javax.sql.DataSource;

/**
 * What only tests ask of the log engine.
 *
 * @since 0.1.0
 */
public final class TestingClient {

	private final Statements statements;

	/**
	 * Creates a client.
	 * @param dataSource leads to the database, as a role that may change the retry queue,
	 * such as the owner of the schema
	 */
	public TestingClient(DataSource dataSource) {
		this.statements = new Statements(dataSource, null);
	}

	/**
	 * Let all waiting retries of a queue be due now.
	 * @param queue the queue name
	 * @return how many there are
	 */
	public int hastenRetries(String queue) {
		return this.statements.query(queue,
				"with due as (update pgque.retry_queue r set ev_retry_after = least(r.ev_retry_after, now())"
						+ " from pgque.queue q where q.queue_id = r.ev_queue and q.queue_name = ? returning 1)"
						+ " select count(*)::int from due",
				(statement) -> statement.setString(1, queue), Rows::singleInt);
	}

}
