package io.pgque.engine;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import javax.sql.DataSource;

import org.assertj.core.groups.Tuple;
import org.postgresql.util.PSQLException;

import org.springframework.core.NestedExceptionUtils;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.ConnectionCallback;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.fail;

/**
 * The engine as a single session calls it. Each call is a transaction of its own, unless
 * it is made within {@link #inTransaction(Runnable)}.
 */
final class Engine {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	private final JdbcTemplate jdbc;

	private final TransactionTemplate transaction;

	Engine(TestDatabase database) {
		this(database.pool(2));
	}

	Engine(DataSource dataSource) {
		this.jdbc = new JdbcTemplate(dataSource);
		this.transaction = new TransactionTemplate(new DataSourceTransactionManager(dataSource));
	}

	/**
	 * Create a queue with consumers.
	 * @return its name, which no other queue has
	 */
	String queue(String... consumers) {
		String queue = "queue_" + NUMBER.incrementAndGet();
		value(Integer.class, "select pgque.create_queue(?)", queue);
		for (String consumer : consumers) {
			subscribe(queue, consumer);
		}
		return queue;
	}

	int idOf(String queue) {
		return value(Integer.class, "select queue_id from pgque.queue where queue_name = ?", queue);
	}

	void configure(String queue, String parameter, String value) {
		value(Integer.class, "select pgque.set_queue_config(?, ?, ?)", queue, parameter, value);
	}

	int subscribe(String queue, String consumer) {
		return value(Integer.class, "select pgque.subscribe(?, ?)", queue, consumer);
	}

	long send(String queue, String payload) {
		return value(Long.class, "select pgque.send(?, 'test', ?::text)", queue, payload);
	}

	/**
	 * Send in one statement.
	 * @return ids of the events
	 */
	List<Long> send(String queue, int count) {
		return values(Long.class, "select unnest(pgque.send_batch(?, 'test', array(select 'payload ' || n"
				+ " from generate_series(1, ?) n order by n)))", queue, count);
	}

	/**
	 * Tick, whatever the thresholds say.
	 * @return id of the tick, null if there was nothing new
	 */
	Long tick(String queue) {
		List<Long> ids = values(Long.class, "select tick_id from pgque.tick_now(array[?])", queue);
		return ids.isEmpty() ? null : ids.get(0);
	}

	/**
	 * Tick without an event.
	 */
	Long tickEmpty(String queue) {
		value(Long.class, "select pgque.force_next_tick(?)", queue);
		return value(Long.class, "select pgque.ticker(?)", queue);
	}

	Long newestTick(String queue) {
		return value(Long.class, "select max(tick_id) from pgque.tick where tick_queue = ?", idOf(queue));
	}

	/**
	 * Let the ticks of a queue be older.
	 */
	void age(String queue, String interval) {
		update("update pgque.tick set tick_time = tick_time - ?::interval where tick_queue = ?", interval, idOf(queue));
	}

	/**
	 * Receive a whole batch of one tick.
	 */
	List<Message> receive(String queue, String consumer) {
		return messages("select * from pgque.receive(?, ?, null)", queue, consumer);
	}

	List<Message> receiveBatch(String queue, String consumer, int maxRows) {
		return messages("select * from pgque.receive_batch(?, ?, ?, 1000000000)", queue, consumer, maxRows);
	}

	int ack(long batch) {
		return value(Integer.class, "select pgque.ack(?)", batch);
	}

	int nack(long batch, long message, String delay, String reason) {
		return value(Integer.class, "select pgque.nack(?, row(?, null, null, null, null, null, null, null, null, null)"
				+ "::pgque.message, ?::interval, ?)", batch, message, delay, reason);
	}

	/**
	 * Receive and finish batches of one tick until nothing comes.
	 */
	List<Message> drain(String queue, String consumer) {
		List<Message> all = new ArrayList<>();
		Long batch = nextBatch(queue, consumer);
		while (batch != null) {
			all.addAll(receive(queue, consumer));
			if (batch.equals(openBatch(queue, consumer))) {
				ack(batch);
			}
			batch = nextBatch(queue, consumer);
		}
		return all;
	}

	Long nextBatch(String queue, String consumer) {
		return value(Long.class, "select pgque.next_batch(?, ?)", queue, consumer);
	}

	Long openBatch(String queue, String consumer) {
		return value(Long.class, "select current_batch from pgque.get_consumer_info(?, ?)", queue, consumer);
	}

	Long position(String queue, String consumer) {
		return value(Long.class, "select last_tick from pgque.get_consumer_info(?, ?)", queue, consumer);
	}

	int moveRetries() {
		return value(Integer.class, "select pgque.maint_retry_events()");
	}

	/**
	 * Let the retries of a queue be due, put them back and tick.
	 */
	void redeliver(String queue) {
		update("update pgque.retry_queue set ev_retry_after = now() - interval '1 second' where ev_queue = ?",
				idOf(queue));
		moveRetries();
		tick(queue);
	}

	List<Message> messages(String sql, Object... arguments) {
		return this.jdbc.query(sql, (row, number) -> Message.of(row), arguments);
	}

	/**
	 * Run a query and return its rows, each with the values of its columns.
	 */
	List<Tuple> rows(String sql, Object... arguments) {
		return this.jdbc.query(sql, (row, number) -> {
			Object[] values = new Object[row.getMetaData().getColumnCount()];
			for (int i = 0; i < values.length; i++) {
				values[i] = row.getObject(i + 1);
			}
			return new Tuple(values);
		}, arguments);
	}

	Tuple row(String sql, Object... arguments) {
		List<Tuple> rows = rows(sql, arguments);
		if (rows.size() != 1) {
			fail("Expected one row, not %d: %s", rows.size(), sql);
		}
		return rows.get(0);
	}

	<T> T value(Class<T> type, String sql, Object... arguments) {
		return this.jdbc.queryForObject(sql, type, arguments);
	}

	<T> List<T> values(Class<T> type, String sql, Object... arguments) {
		return this.jdbc.queryForList(sql, type, arguments);
	}

	int update(String sql, Object... arguments) {
		return this.jdbc.update(sql, arguments);
	}

	void execute(String sql) {
		this.jdbc.execute(sql);
	}

	void inTransaction(Runnable work) {
		this.transaction.executeWithoutResult((status) -> work.run());
	}

	/**
	 * Run a transaction and roll it back.
	 */
	void rolledBack(Runnable work) {
		this.transaction.executeWithoutResult((status) -> {
			work.run();
			status.setRollbackOnly();
		});
	}

	/**
	 * Run a query that has to fail.
	 */
	SqlError error(String sql, Object... arguments) {
		try {
			List<Tuple> rows = rows(sql, arguments);
			return fail("Expected an error, not %s: %s", rows, sql);
		}
		catch (DataAccessException ex) {
			return SqlError.of(ex);
		}
	}

	/**
	 * Run a query and return the warnings it raises, notices among them.
	 */
	List<String> warnings(String sql, Object... arguments) {
		ConnectionCallback<List<String>> callback = (connection) -> {
			List<String> warnings = new ArrayList<>();
			try (PreparedStatement statement = prepare(connection, sql, arguments)) {
				statement.execute();
				for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning
					.getNextWarning()) {
					warnings.add(warning.getMessage());
				}
			}
			return warnings;
		};
		return this.jdbc.execute(callback);
	}

	private static PreparedStatement prepare(Connection connection, String sql, Object[] arguments)
			throws SQLException {
		PreparedStatement statement = connection.prepareStatement(sql);
		for (int i = 0; i < arguments.length; i++) {
			statement.setObject(i + 1, arguments[i]);
		}
		return statement;
	}

	/**
	 * The payloads that {@link #send(String, int)} gives events number first to last.
	 */
	static List<String> payloads(int first, int last) {
		return IntStream.rangeClosed(first, last).mapToObj((n) -> "payload " + n).collect(Collectors.toList());
	}

	/**
	 * An error as the server reports it.
	 *
	 * @param state SQLSTATE
	 * @param message primary message
	 */
	record SqlError(String state, String message) {

		/**
		 * An error of the engine's own, which has no better code.
		 */
		static SqlError raised(String message) {
			return new SqlError("P0001", message);
		}

		/**
		 * Do what has to fail.
		 */
		static SqlError by(Runnable work) {
			try {
				work.run();
				return fail("Expected an error");
			}
			catch (DataAccessException ex) {
				return of(ex);
			}
		}

		static SqlError of(DataAccessException ex) {
			if (NestedExceptionUtils.getRootCause(ex) instanceof PSQLException cause
					&& cause.getServerErrorMessage() != null) {
				return new SqlError(cause.getSQLState(), cause.getServerErrorMessage().getMessage());
			}
			throw ex;
		}

	}

	/**
	 * A row of {@code pgque.message}, read by position as clients do.
	 */
	record Message(long id, long batch, String type, String payload, Integer retryCount, OffsetDateTime createdAt,
			String extra1, String extra2, String extra3, String extra4) {

		static Message of(ResultSet row) throws SQLException {
			return new Message(row.getLong(1), row.getLong(2), row.getString(3), row.getString(4),
					row.getObject(5, Integer.class), row.getObject(6, OffsetDateTime.class), row.getString(7),
					row.getString(8), row.getString(9), row.getString(10));
		}

	}

}
