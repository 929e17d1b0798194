package io.pgque.client;

import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Collection;
import java.util.List;
import java.util.Map;

import javax.sql.DataSource;

import io.pgque.DeadLetterNotFoundException;
import io.pgque.PgqueException;
import org.jspecify.annotations.Nullable;

import org.springframework.dao.DataAccessException;
import org.springframework.util.Assert;

/**
 * The log engine's SQL calls. Each method sends one statement, which joins the caller's
 * Spring transaction or commits by itself.
 *
 * <p>
 * What the engine refuses becomes a {@link io.pgque.PgqueException}, a subclass where an
 * application might want to tell one refusal from another; other failures stay Spring's
 * {@link DataAccessException}s.
 *
 * @since 0.1.0
 */
public final class PgqueClient {

	static final String EVENT_COLUMNS = "msg_id, batch_id, type, payload, retry_count, created_at, "
			+ "extra1, extra2, extra3, extra4, more";

	private final Statements statements;

	private final DirectSends sends;

	/**
	 * Creates a client.
	 * @param dataSource leads to the database
	 */
	public PgqueClient(DataSource dataSource) {
		this(dataSource, null);
	}

	/**
	 * Creates a client whose statements are bounded in time.
	 * @param dataSource leads to the database
	 * @param timeout the longest time that a statement may take, at least one second, or
	 * {@code null} for no limit of its own
	 */
	public PgqueClient(DataSource dataSource, @Nullable Duration timeout) {
		Assert.notNull(dataSource, "dataSource must not be null");
		this.statements = new Statements(dataSource, timeout);
		this.sends = new DirectSends(this.statements);
	}

	/**
	 * Return the calls by which several instances share a consumer.
	 * @return the calls, through the same data source and with the same timeout
	 */
	public SharingClient sharing() {
		return new SharingClient(this.statements);
	}

	/**
	 * Return the calls by which messages wait for others of their key.
	 * @return the calls, through the same data source and with the same timeout
	 * @since 0.2.0
	 */
	public HoldingClient holding() {
		return new HoldingClient(this.statements);
	}

	/**
	 * Return whether statements sent now would join a transaction of the calling thread.
	 * @return whether there is one on the data source
	 */
	public boolean joinsTransaction() {
		return this.statements.isInTransaction();
	}

	/**
	 * Send an event.
	 * @param queue the queue name
	 * @param type the event type
	 * @param data the payload text
	 * @param extras the extra columns
	 * @return the event id
	 */
	public long send(String queue, @Nullable String type, @Nullable String data, EventExtras extras) {
		return this.sends.send(queue, type, data, extras);
	}

	/**
	 * Send events of one type.
	 * @param queue the queue name
	 * @param type the event type
	 * @param payloads the payload texts
	 * @return the event ids, in the order of the payloads and ascending
	 */
	public List<Long> sendBatch(String queue, @Nullable String type, List<@Nullable String> payloads) {
		return this.sends.sendBatch(queue, type, payloads);
	}

	/**
	 * Send events, each with its type and extra columns.
	 * @param queue the queue name
	 * @param types the event types, as many as payloads
	 * @param payloads the payload texts
	 * @param extras the extra columns, as many as payloads
	 * @return the event ids, in the order of the payloads and ascending
	 */
	public List<Long> sendBatch(String queue, List<String> types, List<@Nullable String> payloads,
			List<EventExtras> extras) {
		return call(queue, "select pgque.send_events(?, ?, ?, ?, ?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setArray(2, statement.getConnection().createArrayOf("text", types.toArray()));
			statement.setArray(3, statement.getConnection().createArrayOf("text", payloads.toArray()));
			EventExtras.bind(extras, statement, 4);
		}, Rows::singleLongs);
	}

	/**
	 * Send an event unless its key was used before and still counts.
	 * @param <T> what the result is read as
	 * @param queue the queue name
	 * @param type the event type
	 * @param data the payload text
	 * @param key the idempotency key, which takes the second extra column
	 * @param window how long the key counts
	 * @param extras the other extra columns
	 * @param result takes the event id, whether nothing was sent, and whether what was
	 * sent before differs
	 * @return what it makes of them
	 */
	public <T> T sendOnce(String queue, @Nullable String type, @Nullable String data, String key, Duration window,
			EventExtras extras, SendOnceResult<T> result) {
		return call(queue, "select event_id, deduped, mismatch from pgque.send_once(?, ?, ?, ?, ?::interval, ?, ?, ?)",
				(statement) -> {
					statement.setString(1, queue);
					statement.setString(2, type);
					statement.setString(3, data);
					statement.setString(4, key);
					statement.setString(5, Intervals.text(window));
					statement.setString(6, extras.extra1());
					statement.setString(7, extras.extra3());
					statement.setString(8, extras.extra4());
				}, (rows) -> Rows.sentOnce(rows, result));
	}

	/**
	 * Send an event at a time.
	 * @param queue the queue name
	 * @param type the event type
	 * @param data the payload text
	 * @param at when it is delivered
	 * @param extras the extra columns
	 * @return the id by which it can be cancelled
	 */
	public long sendAt(String queue, @Nullable String type, @Nullable String data, Instant at, EventExtras extras) {
		return call(queue, "select pgque.send_at(?, ?, ?, ?, ?, ?, ?, ?)", (statement) -> {
			bindEvent(statement, queue, type, data);
			statement.setObject(4, at.atOffset(ZoneOffset.UTC));
			extras.bind(statement, 5);
		}, Rows::singleLong);
	}

	/**
	 * Send an event after a delay.
	 * @param queue the queue name
	 * @param type the event type
	 * @param data the payload text
	 * @param after the delay, from now by the database's clock
	 * @param extras the extra columns
	 * @return the id by which it can be cancelled
	 */
	public long sendAfter(String queue, @Nullable String type, @Nullable String data, Duration after,
			EventExtras extras) {
		return call(queue, "select pgque.send_at(?, ?, ?, clock_timestamp() + ?::interval, ?, ?, ?, ?)",
				(statement) -> {
					bindEvent(statement, queue, type, data);
					statement.setString(4, Intervals.text(after));
					extras.bind(statement, 5);
				}, Rows::singleLong);
	}

	static void bindEvent(PreparedStatement statement, String queue, @Nullable String type, @Nullable String data)
			throws SQLException {
		statement.setString(1, queue);
		statement.setString(2, type);
		statement.setString(3, data);
	}

	/**
	 * Cancel a delayed event.
	 * @param queue the queue name
	 * @param id its id
	 * @return whether it will not be delivered; otherwise it was delivered or cancelled
	 * before
	 */
	public boolean cancelDelayed(String queue, long id) {
		return callInt(queue, "select pgque.cancel_delayed(?, ?)", queue, id) == 1;
	}

	/**
	 * Create a queue unless it exists.
	 * @param queue the queue name
	 * @return whether it was created
	 */
	public boolean createQueue(String queue) {
		return callInt(queue, "select pgque.create_queue(?)", queue) == 1;
	}

	/**
	 * Ask whether a queue exists, which a consumer may do.
	 * @param queue the queue name
	 * @return whether it exists
	 */
	public boolean queueExists(String queue) {
		return callInt(queue, "select count(*)::int from pgque.get_queue_info(?)", queue) == 1;
	}

	/**
	 * Drop a queue with all its events.
	 * @param queue the queue name
	 * @param force whether consumers that are still subscribed are unsubscribed
	 */
	public void dropQueue(String queue, boolean force) {
		callInt(queue, "select pgque.drop_queue(?, ?)", queue, force);
	}

	/**
	 * Change a setting of a queue.
	 * @param queue the queue name
	 * @param parameter the name of the setting, such as {@code max_retries}
	 * @param value the value, or {@code null} for the engine's default
	 */
	public void setQueueConfig(String queue, String parameter, @Nullable String value) {
		call(queue, "select pgque.set_queue_config(?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, parameter);
			statement.setString(3, value);
		}, Rows::singleInt);
	}

	/**
	 * Compare settings of a queue, which a consumer may do.
	 * @param queue the queue name
	 * @param settings the names of settings and the values they should have
	 * @return those that differ, with the value that they have; {@code null} stands for
	 * the engine's default
	 */
	public Map<String, @Nullable String> differingSettings(String queue, Map<String, String> settings) {
		return call(queue, """
				select w.name, c.value
				from pgque.queue q
				cross join unnest(?::text[], ?::text[]) w (name, wanted)
				cross join lateral (
				    select case w.name
				               when 'max_retries' then q.queue_max_retries::text
				               when 'ticker_max_count' then q.queue_ticker_max_count::text
				               when 'ticker_max_lag' then q.queue_ticker_max_lag::text
				               when 'ticker_idle_period' then q.queue_ticker_idle_period::text
				               when 'rotation_period' then q.queue_rotation_period::text
				           end,
				           case
				               when w.name in ('max_retries', 'ticker_max_count') then w.wanted
				               else w.wanted::interval::text
				           end
				) c (value, wanted)
				where q.queue_name = ? and c.value is distinct from c.wanted
				""", (statement) -> {
			statement.setArray(1, statement.getConnection().createArrayOf("text", settings.keySet().toArray()));
			statement.setArray(2, statement.getConnection().createArrayOf("text", settings.values().toArray()));
			statement.setString(3, queue);
		}, Rows::settings);
	}

	/**
	 * Subscribe a consumer to what is sent from now on.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @return whether it was not subscribed before
	 */
	public boolean subscribe(String queue, String consumer) {
		return callInt(queue, "select pgque.subscribe(?, ?)", queue, consumer) == 1;
	}

	/**
	 * Remove a consumer's subscription.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @return whether it was subscribed
	 */
	public boolean unsubscribe(String queue, String consumer) {
		return callInt(queue, "select pgque.unsubscribe(?, ?)", queue, consumer) > 0;
	}

	/**
	 * Tick those of the named queues that have something new.
	 * @param queues the queue names
	 * @return what happened to each queue that has something new, or does not exist
	 */
	public List<TickResult> tick(Collection<String> queues) {
		return call(null, tickFrom("pgque.tick_now(?::text[])"),
				(statement) -> statement.setArray(1, statement.getConnection().createArrayOf("text", queues.toArray())),
				Rows::ticks);
	}

	/**
	 * Tick all queues that have something new, except those that are paused or ticked
	 * from outside.
	 * @return what happened to each queue that has something new
	 */
	public List<TickResult> tickAll() {
		return call(null, tickFrom("pgque.tick_now()"), Statements.Arguments.NONE, Rows::ticks);
	}

	/**
	 * Nobody has to wait for a tick to reach the disk: after a crash, the events that it
	 * covered are covered by the next one; and before anything that was received by it is
	 * settled, it has reached the disk with the batch.
	 */
	private String tickFrom(String function) {
		return "select queue_name, tick_id, outcome, detail from " + this.statements.fromAsynchronous(function);
	}

	/**
	 * Open a consumer's next batch, or the one that is open already, and read its first
	 * page.
	 * @param queue the queue name
	 * @param consumer the consumer name
	 * @param maxRows how many events the batch may span, as far as ticks allow, and how
	 * many the page may hold
	 * @param maxBytes how many bytes of text the page may hold; one event is always
	 * returned
	 * @return the page, empty when there is nothing to do now
	 */
	public Page receiveBatch(String queue, String consumer, int maxRows, long maxBytes) {
		return call(queue, "select " + EVENT_COLUMNS + " from pgque.receive_batch(?, ?, ?, ?)", (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, consumer);
			statement.setInt(3, maxRows);
			statement.setLong(4, maxBytes);
		}, Rows::page);
	}

	/**
	 * Read what an open batch has behind its first page, however much that is.
	 * @param batchId the batch id
	 * @param maxRows how many events a page may hold
	 * @param maxBytes how many bytes of text a page may hold; one event is always
	 * returned
	 * @return the pages
	 */
	public BatchPages batchPages(long batchId, int maxRows, long maxBytes) {
		return new BatchPages(this.statements, batchId, maxRows, maxBytes);
	}

	/**
	 * Settle a batch, or its first part, in one statement.
	 * @param batchId the batch id
	 * @param upTo the id of the last event that is done, or {@code null} for the whole
	 * batch; what lies beyond comes again under a new batch id, not counted as failed
	 * @param nacks the events that failed
	 * @return what was done
	 */
	public SettleResult settle(long batchId, @Nullable Long upTo, List<Nack> nacks) {
		NackArrays arrays = NackArrays.of(nacks);
		return call(null,
				"select settled, retried, dead_ids"
						+ " from pgque.settle(?, ?, ?::bigint[], ?::text[]::interval[], ?::text[], ?::boolean[])",
				(statement) -> {
					statement.setLong(1, batchId);
					statement.setObject(2, upTo, java.sql.Types.BIGINT);
					arrays.bind(statement, 3);
				}, Rows::settled);
	}

	/**
	 * Give one event of an open batch back, before the batch is settled.
	 * @param batchId the batch id
	 * @param eventId the event id
	 * @param delay how long to wait before the event comes again, in whole seconds
	 * @param reason why, kept with a dead letter
	 * @return whether the batch was open; when not, nothing was changed
	 * @since 0.2.0
	 */
	public boolean nack(long batchId, long eventId, Duration delay, @Nullable String reason) {
		// Of a message, the engine takes the id only.
		return call(null,
				"select pgque.nack(?, row(?, null, null, null, null, null, null, null, null, null)::pgque.message,"
						+ " ?::interval, ?) from pgque.get_batch_info(?) b where b.queue_name is not null",
				(statement) -> {
					statement.setLong(1, batchId);
					statement.setLong(2, eventId);
					statement.setString(3, Intervals.text(delay));
					statement.setString(4, reason);
					statement.setLong(5, batchId);
				}, ResultSet::next);
	}

	/**
	 * Move retries that are due back to their queues.
	 * @return how many were moved; 0 when none is due
	 */
	public int moveDueRetries() {
		return callInt(null, "select pgque.maint_retry_events()");
	}

	/**
	 * Send the delayed events that are due.
	 * @return how many were sent; when there are very many, there may be more
	 */
	public int deliverDelayed() {
		return callInt(null, "select pgque.maint_deliver_delayed()");
	}

	/**
	 * Run the maintenance, rotation and cleaning up, but for the hooks of queues.
	 * @return the engine's count of what it did
	 */
	public int maintain() {
		return callInt(null, "select pgque.maint_engine()");
	}

	/**
	 * List the hooks that queues have for their maintenance.
	 * @return the hooks in their order
	 */
	public List<MaintenanceHook> maintenanceHooks() {
		return call(null, "select queue, hook from pgque.maint_hooks()", Statements.Arguments.NONE, Rows::hooks);
	}

	/**
	 * Run a hook.
	 * @param hook the hook
	 * @return what it returned
	 */
	public int runHook(MaintenanceHook hook) {
		return callInt(hook.queue(), "select pgque.maint_hook(?, ?)", hook.queue(), hook.hook());
	}

	/**
	 * Finish rotations that an earlier transaction began.
	 */
	public void finishRotation() {
		callInt(null, "select pgque.maint_rotate_tables_step2()");
	}

	/**
	 * List dead letters, newest first.
	 * @param queue the queue name, or {@code null} for all queues
	 * @param maxRows the largest number to return
	 * @return the dead letters
	 */
	public List<DeadLetterRow> deadLetters(@Nullable String queue, int maxRows) {
		return call(queue,
				"select dl_id, queue_name, consumer_name, dl_time, dl_reason, ev_id, ev_time, ev_retry, ev_type,"
						+ " ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4 from pgque.dead_letters(?, ?)",
				(statement) -> {
					statement.setString(1, queue);
					statement.setInt(2, maxRows);
				}, Rows::deadLetters);
	}

	/**
	 * Count dead letters.
	 * @param queue the queue name, or {@code null} for all queues
	 * @return how many there are
	 */
	public long countDeadLetters(@Nullable String queue) {
		return call(queue,
				"select count(*) from pgque.dead_letter d where ?::text is null"
						+ " or d.dl_queue_id = (select q.queue_id from pgque.queue q where q.queue_name = ?)",
				(statement) -> {
					statement.setString(1, queue);
					statement.setString(2, queue);
				}, Rows::singleLong);
	}

	/**
	 * Send a dead letter anew to every consumer of its queue.
	 * @param id the id of the dead letter
	 * @return the new event id
	 */
	public long replay(long id) {
		return callForDeadLetter(id, "select pgque.dlq_replay(?)");
	}

	/**
	 * Deliver a dead letter again to the consumer that could not handle it.
	 * @param id the id of the dead letter
	 * @return the event id
	 */
	public long redeliver(long id) {
		return callForDeadLetter(id, "select pgque.dlq_redeliver(?)");
	}

	private long callForDeadLetter(long id, String sql) {
		try {
			return call(null, sql, (statement) -> statement.setLong(1, id), Rows::singleLong);
		}
		catch (PgqueException ex) {
			throw EngineErrors.isDeadLetterMissing(ex) ? new DeadLetterNotFoundException(id, ex) : ex;
		}
	}

	/**
	 * Deliver all dead letters of a queue again, each to the consumer that failed.
	 * @param queue the queue name
	 * @return how many succeeded and failed
	 */
	public ReplayAllRow redeliverAll(String queue) {
		return call(queue, "select replayed, failed, first_error from pgque.dlq_redeliver_all(?)",
				(statement) -> statement.setString(1, queue), Rows::replayed);
	}

	/**
	 * Remove dead letters for good.
	 * @param queue the queue name
	 * @param olderThan the age beyond which they are removed
	 * @return how many were removed
	 */
	public int purge(String queue, Duration olderThan) {
		return callInt(queue, "select pgque.dlq_purge(?, ?::interval)", queue, Intervals.text(olderThan));
	}

	/**
	 * Return the release of the engine.
	 * @return the version
	 */
	public String version() {
		return call(null, "select pgque.version()", Statements.Arguments.NONE, Rows::singleString);
	}

	/**
	 * Return what ticks the queues besides applications.
	 * @return the name of the scheduler in the database, {@code manual} when there is
	 * none
	 */
	public String scheduler() {
		return call(null, "select status from pgque.status() where component = 'scheduler'", Statements.Arguments.NONE,
				Rows::singleString);
	}

	/**
	 * List the queues by name.
	 * @return the queues
	 */
	public List<QueueRow> queues() {
		return call(null,
				"select queue_name, extract(epoch from queue_rotation_period), queue_external_ticker,"
						+ " queue_ticker_paused, queue_ticker_max_count, extract(epoch from queue_ticker_max_lag),"
						+ " extract(epoch from queue_ticker_idle_period), extract(epoch from ticker_lag),"
						+ " ev_per_sec, ev_new, last_tick_id from pgque.get_queue_info()",
				Statements.Arguments.NONE, Rows::queues);
	}

	/**
	 * List the consumers by queue and name.
	 * @return the consumers
	 */
	public List<ConsumerRow> consumers() {
		return call(null,
				"select queue_name, consumer_name, extract(epoch from lag), extract(epoch from last_seen), last_tick,"
						+ " current_batch, next_tick, pending_events from pgque.get_consumer_info()",
				Statements.Arguments.NONE, Rows::consumers);
	}

	private int callInt(@Nullable String queue, String sql, Object... arguments) {
		return call(queue, sql, (statement) -> {
			for (int i = 0; i < arguments.length; i++) {
				statement.setObject(i + 1, arguments[i]);
			}
		}, Rows::singleInt);
	}

	private <T> T call(@Nullable String queue, String sql, Statements.Arguments arguments,
			Statements.Result<T> result) {
		return this.statements.query(queue, sql, arguments, result);
	}

}
