package io.pgque.client;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Function;
import java.util.function.LongSupplier;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.jdbc.PreferQueryMode;

/**
 * Sends events: by an insert into the table that a queue's events go to at the moment,
 * which costs less than a call of the engine's function, or by the function where that
 * table is not known or not the caller's to insert into.
 *
 * <p>
 * The insert has a condition that makes it as right as the function: once events go
 * elsewhere, or nowhere, it inserts nothing, and the function is asked. The name is part
 * of it, since another database may give the id to another queue.
 */
final class DirectSends {

	private static final Duration ASK_AGAIN_AFTER = Duration.ofMinutes(1);

	/**
	 * Each place has statements of its own, and a connection keeps 256 of all kinds.
	 */
	private static final int MAX_PLACES = 64;

	private static final String SEND = "select pgque.insert_event(?, ?, ?, ?, ?, ?, ?)";

	private static final String SEND_BATCH = "select pgque.send_batch(?, ?, ?)";

	private static final String AND_ASK = ", p.queue_id, p.slot from pgque.event_place(?) p";

	private final Statements statements;

	private final LongSupplier nanoTime;

	private final ConcurrentMap<String, Place> places = new ConcurrentHashMap<>();

	DirectSends(Statements statements) {
		this(statements, System::nanoTime);
	}

	DirectSends(Statements statements, LongSupplier nanoTime) {
		this.statements = statements;
		this.nanoTime = nanoTime;
	}

	/**
	 * Send an event.
	 * @return the event id
	 */
	long send(String queue, @Nullable String type, @Nullable String data, EventExtras extras) {
		boolean plain = extras.equals(EventExtras.NONE);
		Insert<Long> insert = new Insert<>(plain ? Table::insert : Table::insertWithExtras, (statement) -> {
			statement.setString(1, type);
			statement.setString(2, data);
			if (!plain) {
				extras.bind(statement, 3);
			}
			statement.setString(plain ? 3 : 7, queue);
		}, Rows::optionalLong);
		return send(queue, insert, new Call<>(SEND, (statement) -> {
			PgqueClient.bindEvent(statement, queue, type, data);
			extras.bind(statement, 4);
		}, 7, Rows::singleLong));
	}

	/**
	 * Send events of one type.
	 * @return the event ids in the order of the payloads
	 */
	List<Long> sendBatch(String queue, @Nullable String type, List<@Nullable String> payloads) {
		Call<List<Long>> call = new Call<>(SEND_BATCH, (statement) -> {
			statement.setString(1, queue);
			statement.setString(2, type);
			statement.setArray(3, statement.getConnection().createArrayOf("text", payloads.toArray()));
		}, 3, Rows::singleLongs);
		if (payloads.isEmpty()) {
			return call(queue, call);
		}
		return send(queue, new Insert<>(Table::insertMany, (statement) -> {
			statement.setString(1, type);
			statement.setArray(2, statement.getConnection().createArrayOf("text", payloads.toArray()));
			statement.setString(3, queue);
		}, Rows::optionalLongs), call);
	}

	private <T> T send(String queue, Insert<T> insert, Call<T> call) {
		Place place = this.places.get(queue);
		if (place instanceof Table table) {
			Optional<T> sent = insert(queue, table, insert);
			if (sent.isPresent()) {
				return sent.get();
			}
			this.places.remove(queue, table);
		}
		else if (place instanceof Nowhere nowhere && this.nanoTime.getAsLong() - nowhere.askAgainAt() < 0) {
			return call(queue, call);
		}
		return callAndAsk(queue, call);
	}

	/**
	 * Insert, if the queue's events still go there.
	 * @return the result, none if nothing was inserted
	 */
	private <T> Optional<T> insert(String queue, Table table, Insert<T> insert) {
		boolean alone = this.statements.isAlone();
		try {
			return this.statements.query(queue, insert.sql().apply(table), insert.arguments(), insert.result());
		}
		catch (RuntimeException ex) {
			this.places.remove(queue, table);
			if (!EngineErrors.isTableMissing(ex)) {
				throw ex;
			}
			if (!alone) {
				throw EngineErrors.queueGone(queue, ex);
			}
			// Nothing was spoilt but a transaction of its own: a queue of that name may
			// be there again, and otherwise the function says that there is none.
			return Optional.empty();
		}
	}

	private <T> T call(String queue, Call<T> call) {
		return this.statements.query(queue, call.sql(), call.arguments(), call.result());
	}

	/**
	 * Call the function and learn, in the same round trip, where the next events go.
	 */
	private <T> T callAndAsk(String queue, Call<T> call) {
		return this.statements.query(queue, call.sql() + AND_ASK, (statement) -> {
			call.arguments().bind(statement);
			statement.setString(call.parameters() + 1, queue);
		}, (rows) -> {
			T result = call.result().read(rows);
			this.places.put(queue, place(rows));
			return result;
		});
	}

	private Place place(ResultSet rows) throws SQLException {
		int queueId = rows.getInt(2);
		if (rows.wasNull() || this.places.size() >= MAX_PLACES || this.statements.isRouting()
				|| !keepsStatements(rows.getStatement().getConnection())) {
			return new Nowhere(this.nanoTime.getAsLong() + ASK_AGAIN_AFTER.toNanos());
		}
		return Table.of(queueId, rows.getInt(3));
	}

	/**
	 * Whether a statement is planned once for many executions. One that is planned each
	 * time takes longer than the function, whose own statements are planned once.
	 */
	static boolean keepsStatements(Connection connection) {
		try {
			if (!connection.isWrapperFor(PGConnection.class)) {
				return false;
			}
			PGConnection driver = connection.unwrap(PGConnection.class);
			return driver.getPrepareThreshold() > 0 && driver.getPreferQueryMode() != PreferQueryMode.SIMPLE;
		}
		catch (SQLException ex) {
			// Of a wrapper that doesn't show what it wraps; the event is sent already.
			return false;
		}
	}

	/**
	 * An insert into a queue's table.
	 *
	 * @param <T> the ids
	 * @param sql which of the table's statements it is
	 * @param arguments binds what is inserted
	 * @param result reads the ids, if any
	 */
	private record Insert<T>(Function<Table, String> sql, Statements.Arguments arguments,
			Statements.Result<Optional<T>> result) {

	}

	/**
	 * A call of the function that does the same.
	 *
	 * @param <T> the ids
	 * @param sql the statement
	 * @param arguments binds its parameters
	 * @param parameters how many these are
	 * @param result reads the ids
	 */
	private record Call<T>(String sql, Statements.Arguments arguments, int parameters, Statements.Result<T> result) {

	}

	/**
	 * Where the events of a queue are to be inserted.
	 */
	private sealed interface Place {

	}

	/**
	 * Nowhere, for the time being.
	 *
	 * @param askAgainAt the time from which on the question is worth repeating, in
	 * nanoseconds of the clock
	 */
	private record Nowhere(long askAgainAt) implements Place {

	}

	/**
	 * Into a table.
	 *
	 * @param insert inserts an event without extra columns
	 * @param insertWithExtras inserts an event with them
	 * @param insertMany inserts events without them
	 */
	private record Table(String insert, String insertWithExtras, String insertMany) implements Place {

		static Table of(int queueId, int slot) {
			return new Table(insert(queueId, slot, "", "?::text"),
					insert(queueId, slot, ", ev_extra1, ev_extra2, ev_extra3, ev_extra4",
							"?::text, ?::text, ?::text, ?::text, ?::text"),
					insert(queueId, slot, "", "unnest(?::text[])"));
		}

		private static String insert(int queueId, int slot, String columns, String values) {
			return "insert into pgque.event_" + queueId + "_" + slot + " (ev_type, ev_data" + columns + ")"
					+ " select ?::text, " + values + " from pgque.queue q where q.queue_id = " + queueId
					+ " and q.queue_name = ? and q.queue_cur_table = " + slot
					+ " and not q.queue_disable_insert returning ev_id";
		}

	}

}
