package io.pgque.client;

import java.sql.SQLException;

import io.pgque.MissingPrivilegeException;
import io.pgque.PgqueException;
import io.pgque.PgqueSchemaException;
import io.pgque.QueueNotFoundException;
import io.pgque.ReadOnlyTransactionException;
import io.pgque.SubscriptionNotFoundException;
import org.jspecify.annotations.Nullable;

import org.springframework.dao.DataAccessException;

/**
 * Tells what the engine refuses from what goes wrong beneath it.
 */
final class EngineErrors {

	private static final String POOLER_REMEDY = "Behind a transaction pooler add prepareThreshold=0 to the JDBC URL, or "
			+ "let the pooler manage prepared statements (PgBouncer 1.21 and later: max_prepared_statements)";

	private EngineErrors() {
	}

	/**
	 * Translate a failure.
	 * @param queue the queue that the statement was about, if any
	 * @param product where the statement was sent to, if that is known
	 * @param failure what Spring made of the driver's exception
	 * @return the exception to throw, the given one when the engine has no part in it
	 */
	static RuntimeException translate(@Nullable String queue, @Nullable DatabaseProduct product,
			DataAccessException failure) {
		if (product != null && !product.isSupported()) {
			return product.unsupported(failure);
		}
		SQLException sql = sqlException(failure);
		if (sql == null || sql.getSQLState() == null) {
			return failure;
		}
		String text = firstLine(sql);
		return switch (sql.getSQLState()) {
			case "P0001" -> refusal(queue, text, failure);
			case "55P03" -> lease(text, failure);
			case "25006" -> readOnly(queue, failure);
			case "42501" -> new MissingPrivilegeException("The database role lacks a privilege: " + text,
					"Grant it pgque_writer to send, pgque_reader to consume, pgque_admin to create queues, tick and "
							+ "maintain",
					failure);
			case "3F000", "42883", "42P01" ->
				new PgqueSchemaException("The database has no PgQue schema, or one of another release: " + text,
						"Set pgque.schema.mode=migrate, or have the database's administrator run pgque-install.sql",
						failure);
			case "26000", "42P05" ->
				new PgqueException("The connection pooler loses prepared statements: " + text, POOLER_REMEDY, failure);
			default -> failure;
		};
	}

	static boolean isTableMissing(RuntimeException failure) {
		if (!(failure instanceof PgqueSchemaException && failure.getCause() instanceof DataAccessException cause)) {
			return false;
		}
		SQLException sql = sqlException(cause);
		return sql != null && "42P01".equals(sql.getSQLState());
	}

	/**
	 * What the lack of a queue's event table means.
	 */
	static QueueNotFoundException queueGone(String queue, RuntimeException failure) {
		return new QueueNotFoundException(queue,
				"Queue '" + queue + "' does not exist, or was dropped and created again since the last send",
				createQueue(queue) + "; where it exists again, repeat the transaction", failure);
	}

	private static String createQueue(String queue) {
		return "Declare a PgqueQueue bean for it, listen to it with @PgqueListener, or run select pgque.create_queue('"
				+ queue.replace("'", "''") + "')";
	}

	static boolean isDeadLetterMissing(PgqueException failure) {
		return failure.getProblem().startsWith("dead letter entry not found");
	}

	private static RuntimeException lease(String text, DataAccessException failure) {
		if (text.startsWith("lease of consumer")) {
			return new LeaseLostException(text, failure);
		}
		if (text.contains(" is leased by ")) {
			return new PgqueException(text,
					"Let the listener of that instance receive, or stop it; a lease that is not given up ends by itself",
					failure);
		}
		return failure;
	}

	private static PgqueException refusal(@Nullable String queue, String text, DataAccessException failure) {
		if (queue != null) {
			if (text.contains("queue not found") || text.contains("Queue not found")
					|| text.contains("No such event queue") || text.contains("Event queue not created yet")) {
				return new QueueNotFoundException(queue, "Queue '" + queue + "' does not exist", createQueue(queue),
						failure);
			}
			if (text.contains("Not subscriber to queue")) {
				return new SubscriptionNotFoundException(queue, text, "Subscribe the consumer first", failure);
			}
		}
		return new PgqueException(text, failure);
	}

	private static ReadOnlyTransactionException readOnly(@Nullable String queue, DataAccessException failure) {
		String what = (queue != null) ? "Queue '" + queue + "' cannot be written to" : "Queues cannot be written to";
		return new ReadOnlyTransactionException((queue != null) ? queue : "",
				what + ": the transaction or the server is read-only",
				"Use a read-write transaction, or connect to the primary server", failure);
	}

	private static @Nullable SQLException sqlException(DataAccessException failure) {
		for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
			if (cause instanceof SQLException sql) {
				return sql;
			}
		}
		return null;
	}

	/**
	 * The driver's message goes on with hints and positions; its first line is the
	 * engine's text behind a severity.
	 */
	private static String firstLine(SQLException failure) {
		String message = (failure.getMessage() != null) ? failure.getMessage() : "";
		String line = message.lines().findFirst().orElse("");
		return line.startsWith("ERROR: ") ? line.substring("ERROR: ".length()) : line;
	}

}
