package io.pgque.engine;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

import javax.sql.DataSource;

import org.assertj.core.groups.Tuple;
import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

import org.springframework.core.NestedExceptionUtils;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;

import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

/**
 * Calls of the engine for tests of shared consumers. Each call is a transaction of its
 * own.
 */
final class SqlCalls {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	private final JdbcTemplate jdbc;

	SqlCalls(TestDatabase database) {
		this(database.pool(2));
	}

	SqlCalls(DataSource dataSource) {
		this.jdbc = new JdbcTemplate(dataSource);
	}

	/**
	 * Create a queue.
	 * @return its name, which no other queue has
	 */
	String queue() {
		String queue = "shared-" + NUMBER.incrementAndGet();
		integer("select pgque.create_queue(?)", queue);
		return queue;
	}

	long send(String queue, String payload) {
		return id("select pgque.send(?, 'test', ?::text)", queue, payload);
	}

	/**
	 * Send an event with a key.
	 */
	long sendKeyed(String queue, @Nullable String key, String payload) {
		return id("select pgque.insert_event(?, 'test', ?, ?, null, null, null)", queue, payload, key);
	}

	/**
	 * Send a payload and take a tick behind it, for each.
	 */
	void sendTicks(String queue, String... payloads) {
		for (String payload : payloads) {
			send(queue, payload);
			tick(queue);
		}
	}

	/**
	 * Take a tick if there is anything new.
	 */
	void tick(String queue) {
		row("select count(*) from pgque.tick_now(array[?])", queue);
	}

	/**
	 * Take a tick without an event.
	 */
	void tickEmpty(String queue) {
		value(Long.class, "select pgque.force_next_tick(?)", queue);
		id("select pgque.ticker(?)", queue);
	}

	long newestTick(String queue) {
		return id("select last_tick_id from pgque.get_queue_info(?)", queue);
	}

	/**
	 * Let the retries of a queue be due, put them back and tick.
	 */
	void redeliver(String queue) {
		update("update pgque.retry_queue set ev_retry_after = now() - interval '1 second' where ev_queue ="
				+ " (select queue_id from pgque.queue where queue_name = ?)", queue);
		integer("select pgque.maint_retry_events()");
		tick(queue);
	}

	/**
	 * Give one message back, due in a minute.
	 */
	int nack(long batch, long message) {
		return integer("select pgque.nack(?, row(?, null, null, null, null, null, null, null, null, null)"
				+ "::pgque.message, '1 minute', 'why')", batch, message);
	}

	/**
	 * Settle the whole batch without failures.
	 * @return whether the batch was still open
	 */
	boolean settle(long batch) {
		return Boolean.TRUE
			.equals(value(Boolean.class, "select settled from pgque.settle(?, null, '{}', '{}', '{}', '{}')", batch));
	}

	/**
	 * Return a consumer as {@code pgque.subscription} shows it: role, last tick, batch
	 * and next tick.
	 */
	Tuple subscription(String queue, String consumer) {
		return row("select sub_role, sub_last_tick, sub_batch, sub_next_tick from pgque.subscription"
				+ " join pgque.queue on queue_id = sub_queue join pgque.consumer on co_id = sub_consumer"
				+ " where queue_name = ? and co_name = ?", queue, consumer);
	}

	boolean isSubscribed(String queue, String consumer) {
		return !rows("select from pgque.get_consumer_info(?, ?)", queue, consumer).isEmpty();
	}

	/**
	 * Run a query that returns rows of {@code pgque.message}, or of our functions that
	 * add a column.
	 */
	List<Message> messages(String sql, @Nullable Object... arguments) {
		return this.jdbc.query(sql, (row, number) -> Message.of(row), arguments);
	}

	List<Tuple> rows(String sql, @Nullable Object... arguments) {
		return this.jdbc.query(sql, (row, number) -> {
			Object[] values = new Object[row.getMetaData().getColumnCount()];
			for (int i = 0; i < values.length; i++) {
				values[i] = row.getObject(i + 1);
			}
			return new Tuple(values);
		}, arguments);
	}

	Tuple row(String sql, @Nullable Object... arguments) {
		List<Tuple> rows = rows(sql, arguments);
		if (rows.size() != 1) {
			fail("Expected one row, not %d: %s", rows.size(), sql);
		}
		return rows.get(0);
	}

	<T> @Nullable T value(Class<T> type, String sql, @Nullable Object... arguments) {
		return this.jdbc.queryForObject(sql, type, arguments);
	}

	int integer(String sql, @Nullable Object... arguments) {
		Integer value = value(Integer.class, sql, arguments);
		return (value != null) ? value : fail("Expected a number, not null: %s", sql);
	}

	long id(String sql, @Nullable Object... arguments) {
		Long value = value(Long.class, sql, arguments);
		return (value != null) ? value : fail("Expected an id, not null: %s", sql);
	}

	<T> List<T> values(Class<T> type, String sql, @Nullable Object... arguments) {
		return this.jdbc.queryForList(sql, type, arguments);
	}

	int update(String sql, @Nullable Object... arguments) {
		return this.jdbc.update(sql, arguments);
	}

	void execute(String sql) {
		this.jdbc.execute(sql);
	}

	/**
	 * Run a query that has to fail.
	 */
	SqlError error(String sql, @Nullable Object... arguments) {
		try {
			List<Tuple> rows = rows(sql, arguments);
			return fail("Expected an error, not %s: %s", rows, sql);
		}
		catch (DataAccessException ex) {
			return SqlError.of(ex);
		}
	}

	/**
	 * An error as the server reports it.
	 *
	 * @param state SQLSTATE
	 * @param message primary message
	 */
	record SqlError(String state, String message) {

		/**
		 * Check for an error of the engine's own that has no other code.
		 */
		static Consumer<SqlError> raised(String... parts) {
			return (error) -> {
				assertThat(error.state()).isEqualTo("P0001");
				assertThat(error.message()).contains(parts);
			};
		}

		static SqlError of(Exception ex) {
			ServerErrorMessage error = (NestedExceptionUtils.getMostSpecificCause(ex) instanceof PSQLException cause)
					? cause.getServerErrorMessage() : null;
			if (error == null || error.getMessage() == null || error.getSQLState() == null) {
				return fail("No error of the server", ex);
			}
			return new SqlError(error.getSQLState(), error.getMessage());
		}

	}

	/**
	 * A row of {@code pgque.message}, read by position as clients do.
	 */
	record Message(long id, long batch, @Nullable String type, @Nullable String payload, @Nullable Integer retryCount,
			OffsetDateTime createdAt, @Nullable String extra1) {

		static Message of(ResultSet row) throws SQLException {
			return new Message(row.getLong(1), row.getLong(2), row.getString(3), row.getString(4),
					row.getObject(5, Integer.class), row.getObject(6, OffsetDateTime.class), row.getString(7));
		}

		static List<@Nullable String> payloads(List<Message> messages) {
			List<@Nullable String> payloads = new ArrayList<>();
			messages.forEach((message) -> payloads.add(message.payload()));
			return payloads;
		}

	}

}
