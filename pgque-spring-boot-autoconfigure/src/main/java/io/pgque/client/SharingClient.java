package io.pgque.client;

import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;

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
	 * read its first page. Outside a transaction this doesn't wait for the disk: after a
	 * crash the batch may not be open, and settling it does nothing.
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
				"select " + PgqueClient.EVENT_COLUMNS + " from "
						+ this.statements.fromAsynchronous("pgque.receive_leased(?, ?, ?, ?, ?, ?)"),
				(statement) -> bindLeased(statement, queue, consumer, instance, epoch, maxRows, maxBytes), Rows::page);
	}

	/**
	 * Tick the queue, then receive as {@link #receiveLeased} does, all in one statement,
	 * which doesn't wait for the disk either. The role needs the privilege to tick.
	 * @param queue the queue name
	 * @param consumer the consumer name, or that of a slot of a partitioned one
	 * @param instance the instance that holds the lease
	 * @param epoch the number of the lease
	 * @param maxRows how many events the batch may span, as far as ticks allow, and how
	 * many the page may hold
	 * @param maxBytes how many bytes of text the page may hold; one event is always
	 * returned
	 * @return the page, empty when there is nothing to do now, and the tick
	 * @throws LeaseLostException when the instance does not hold the lease any more
	 * @since 0.2.0
	 */
	public TickedPage tickAndReceiveLeased(String queue, String consumer, String instance, long epoch, int maxRows,
			long maxBytes) {
		return this.statements.query(queue,
				"select " + PgqueClient.EVENT_COLUMNS + ", tick_id from "
						+ this.statements.fromAsynchronous("pgque.tick_and_receive_leased(?, ?, ?, ?, ?, ?)"),
				(statement) -> bindLeased(statement, queue, consumer, instance, epoch, maxRows, maxBytes),
				Rows::tickedPage);
	}

	/**
	 * Settle a batch of which nothing failed, then receive as {@link #receiveLeased}
	 * does, all in one statement.
	 * @param batchId the batch
	 * @param instance the instance that holds the lease of the batch's consumer
	 * @param epoch the number of the lease
	 * @param maxRows how many events the next batch may span, as far as ticks allow, and
	 * how many the page may hold
	 * @param maxBytes how many bytes of text the page may hold; one event is always
	 * returned
	 * @return the page, empty when there is nothing to do now
	 * @throws LeaseLostException when the instance does not hold the lease any more;
	 * nothing is settled then
	 * @throws org.springframework.dao.DataAccessException when the batch is not open any
	 * more, among other reasons; nothing is settled then
	 * @since 0.2.0
	 */
	public Page settleAndReceiveLeased(long batchId, String instance, long epoch, int maxRows, long maxBytes) {
		return this.statements.query(null,
				"select " + PgqueClient.EVENT_COLUMNS + " from pgque.settle_and_receive_leased(?, ?, ?, ?, ?)",
				(statement) -> {
					statement.setLong(1, batchId);
					statement.setString(2, instance);
					statement.setLong(3, epoch);
					statement.setInt(4, maxRows);
					statement.setLong(5, maxBytes);
				}, Rows::page);
	}

	private static void bindLeased(PreparedStatement statement, String queue, String consumer, String instance,
			long epoch, int maxRows, long maxBytes) throws SQLException {
		statement.setString(1, queue);
		statement.setString(2, consumer);
		statement.setString(3, instance);
		statement.setLong(4, epoch);
		statement.setInt(5, maxRows);
		statement.setLong(6, maxBytes);
	}

	/**
	 * Subscribe a consumer to what was sent since a time, as far as it is still there.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param from the time
	 * @return whether it was not subscribed before; otherwise it stays where it is
	 */
	public boolean subscribe(String queue, String consumer, Instant from) {
		return this.statements.query(queue, "select pgque.subscribe_from(?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setObject(3, from.atOffset(ZoneOffset.UTC));
		}, Rows::singleInt) == 1;
	}

	/**
	 * Ask how a consumer is read.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @return the kind of the consumer
	 */
	public ConsumerMode consumerMode(String queue, String consumer) {
		return this.statements.query(queue, "select mode, slots from pgque.consumer_mode(?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
		}, Rows::consumerMode);
	}

	/**
	 * Make an instance's member of a cooperative consumer. A normal consumer becomes a
	 * cooperative one where it stands.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param member the name of the member
	 * @param instance the instance, which must have told within the given time that it is
	 * alive
	 * @param dead after how long without a sign of life of the instance the member is
	 * removed
	 */
	public void joinGroup(String queue, String consumer, String member, String instance, Duration dead) {
		this.statements.query(queue, "select pgque.join_group(?, ?, ?, ?, ?::interval)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setString(3, member);
			statement.setString(4, instance);
			statement.setString(5, Intervals.text(dead));
		}, Rows::singleInt);
	}

	/**
	 * End a membership. What is left of an open batch goes to the other members at once,
	 * and is not counted as failed.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param member the name of the member
	 */
	public void leaveGroup(String queue, String consumer, String member) {
		this.statements.query(queue, "select pgque.leave_group(?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setString(3, member);
		}, Rows::singleInt);
	}

	/**
	 * Tell that a member of a cooperative consumer is alive.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param member the name of the member
	 */
	public void touchMember(String queue, String consumer, String member) {
		this.statements.query(queue, "select pgque.touch_subconsumer(?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setString(3, member);
		}, Rows::singleInt);
	}

	/**
	 * Open a member's next batch, or the one that is open already, and read its first
	 * page.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param member the name of the member
	 * @param dead after how long without a sign of life the batch of another member is
	 * taken over
	 * @param maxRows how many events the batch may span, as far as ticks allow, and how
	 * many the page may hold
	 * @param maxBytes how many bytes of text the page may hold; one event is always
	 * returned
	 * @return the page, empty when there is nothing to do now
	 */
	public Page receiveAsMember(String queue, String consumer, String member, Duration dead, int maxRows,
			long maxBytes) {
		return this.statements.query(queue,
				"select " + PgqueClient.EVENT_COLUMNS + " from pgque.receive_coop_batch(?, ?, ?, ?, ?, ?::interval)",
				(statement) -> {
					statement.setString(1, queue);
					statement.setString(2, consumer);
					statement.setString(3, member);
					statement.setInt(4, maxRows);
					statement.setLong(5, maxBytes);
					statement.setString(6, Intervals.text(dead));
				}, Rows::page);
	}

	/**
	 * Make a cooperative consumer a normal one.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @throws io.pgque.PgqueException when it has members that are at work
	 */
	public void dissolveGroup(String queue, String consumer) {
		this.statements.query(queue, "select pgque.dissolve_group(?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
		}, Rows::singleInt);
	}

	/**
	 * Subscribe all slots of a partitioned consumer that are not subscribed yet.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param slots the number of slots
	 * @return how many were subscribed
	 */
	public int subscribeSlots(String queue, String consumer, int slots) {
		return this.statements.query(queue, "select pgque.subscribe_slots(?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setInt(3, slots);
		}, Rows::singleInt);
	}

	/**
	 * Make a normal consumer a partitioned one where it stands.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param slots the number of slots
	 * @throws io.pgque.PgqueException when the consumer is in use
	 */
	public void divide(String queue, String consumer, int slots) {
		this.statements.query(queue, "select pgque.change_partitions(?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setInt(3, slots);
		}, Rows::singleBoolean);
	}

	/**
	 * Take an instance's fair share of a partitioned consumer's slots.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param slots the number of slots
	 * @param instance the instance, which must have told within the lease's time that it
	 * is alive
	 * @param lease after how long without a sign of life others may take its slots
	 * @return the slots that it holds, also those beyond its share
	 */
	public List<SlotClaim> claimSlots(String queue, String consumer, int slots, String instance, Duration lease) {
		return this.statements.query(queue,
				"select slot, epoch, surplus from pgque.claim_slots(?, ?, ?, ?, ?::interval)", (statement) -> {
					statement.setString(1, queue);
					statement.setString(2, consumer);
					statement.setInt(3, slots);
					statement.setString(4, instance);
					statement.setString(5, Intervals.text(lease));
				}, Rows::slotClaims);
	}

	/**
	 * Leave the slots of a partitioned consumer to the other instances. Those that are
	 * still held are given up one by one.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param instance the instance
	 */
	public void leaveSlots(String queue, String consumer, String instance) {
		this.statements.query(queue, "select count(*)::int from pgque.leave_slots(?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setString(3, instance);
		}, Rows::singleInt);
	}

	/**
	 * Return the statement with which a person does what {@link #divide} does, also for a
	 * partitioned consumer.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param slots the number of slots, 0 for a normal consumer
	 * @return the statement
	 */
	public static String divideStatement(String queue, String consumer, int slots) {
		return "select pgque.change_partitions(" + literal(queue) + ", " + literal(consumer) + ", " + slots + ")";
	}

	/**
	 * Return the statement with which a person does what {@link #dissolveGroup} does.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @return the statement
	 */
	public static String dissolveStatement(String queue, String consumer) {
		return "select pgque.dissolve_group(" + literal(queue) + ", " + literal(consumer) + ")";
	}

	private static String literal(String text) {
		return "'" + text.replace("'", "''") + "'";
	}

}
