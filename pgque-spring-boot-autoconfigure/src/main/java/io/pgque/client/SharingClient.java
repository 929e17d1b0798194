package io.pgque.client;

import java.time.Duration;

/**
 * The log engine's SQL calls by which several instances share a consumer. Each method
 * sends one statement, as those of {@link PgqueClient} do.
 *
 * @since 0.1.0
 * @see PgqueClient#sharing()
 */
public final class SharingClient {

	private final Statements statements;

	SharingClient(Statements statements) {
		this.statements = statements;
	}

	/**
	 * Tell that an instance is alive.
	 * @param instance the name of the instance, which no other has
	 */
	public void beat(String instance) {
		this.statements.query(null, "select count(*)::int from pgque.instance_beat(?)",
				(statement) -> statement.setString(1, instance), Rows::singleInt);
	}

	/**
	 * Take the lease of a consumer, or keep it. Waits for nobody.
	 * @param queue the queue name
	 * @param consumer the consumer name, or that of a slot of a partitioned one
	 * @param instance the instance, which must have told within the lease's time that it
	 * is alive
	 * @param lease after how long without a sign of life another instance may take it
	 * @return the lease, or how long another instance keeps it at least
	 */
	public LeaseAttempt acquireLease(String queue, String consumer, String instance, Duration lease) {
		return this.statements.query(queue,
				"with attempt as materialized (select pgque.lease_acquire(?, ?, ?, ?::interval) as epoch)"
						+ " select epoch, case when epoch is null then extract(epoch from pgque.lease_left(?, ?)) end"
						+ " from attempt",
				(statement) -> {
					statement.setString(1, queue);
					statement.setString(2, consumer);
					statement.setString(3, instance);
					statement.setString(4, Intervals.text(lease));
					statement.setString(5, queue);
					statement.setString(6, consumer);
				}, Rows::leaseAttempt);
	}

	/**
	 * Give a lease up, so that whoever waits for it takes it at once.
	 * @param queue the queue name
	 * @param consumer the consumer name, or that of a slot of a partitioned one
	 * @param instance the instance that holds it
	 * @param epoch the number of the lease
	 * @return whether it was held; otherwise nothing is changed
	 */
	public boolean releaseLease(String queue, String consumer, String instance, long epoch) {
		return this.statements.query(queue, "select pgque.lease_release(?, ?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setString(3, instance);
			statement.setLong(4, epoch);
		}, Rows::singleBoolean);
	}

	/**
	 * Open the next batch as the holder of a lease, or the one that is open already, and
	 * read its first page.
	 * @param queue the queue name
	 * @param consumer the consumer name, or that of a slot of a partitioned one
	 * @param instance the instance that holds the lease
	 * @param epoch the number of the lease
	 * @param maxRows how many events the batch may span, as far as ticks allow, and how
	 * many the page may hold
	 * @param maxBytes how many bytes of text the page may hold; one event is always
	 * returned
	 * @return the page, empty when there is nothing to do now
	 * @throws LeaseLostException when the instance does not hold the lease any more
	 */
	public Page receiveLeased(String queue, String consumer, String instance, long epoch, int maxRows, long maxBytes) {
		return this.statements.query(queue,
				"select " + PgqueClient.EVENT_COLUMNS + " from pgque.receive_leased(?, ?, ?, ?, ?, ?)", (statement) -> {
					statement.setString(1, queue);
					statement.setString(2, consumer);
					statement.setString(3, instance);
					statement.setLong(4, epoch);
					statement.setInt(5, maxRows);
					statement.setLong(6, maxBytes);
				}, Rows::page);
	}

}
