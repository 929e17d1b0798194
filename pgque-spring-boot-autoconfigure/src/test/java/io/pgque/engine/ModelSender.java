package io.pgque.engine;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;

/**
 * A session of an {@link EngineModel} that sends in transactions, with savepoints, some
 * of them on a snapshot from long ago.
 */
final class ModelSender {

	private final EngineModel model;

	private final Session session;

	/**
	 * What the transaction has sent: one list for each open savepoint, the first for
	 * none.
	 */
	private final Deque<List<Long>> sent = new ArrayDeque<>();

	private final Deque<Savepoint> savepoints = new ArrayDeque<>();

	private boolean frozen;

	ModelSender(EngineModel model, Session session) {
		this.model = model;
		this.session = session;
	}

	String step(Random random) throws SQLException {
		if (this.sent.isEmpty()) {
			return begin(random.nextInt(4) == 0) + ", " + send(random);
		}
		int choice = random.nextInt(100);
		if (choice < 40) {
			return send(random);
		}
		if (choice < 50) {
			this.savepoints.push(this.session.connection().setSavepoint());
			this.sent.push(new ArrayList<>());
			return "savepoint";
		}
		if (choice < 60 && !this.savepoints.isEmpty()) {
			return endSavepoint(random.nextBoolean());
		}
		if (choice < 64 && !this.frozen) {
			return "tick in the open transaction -> " + this.session.column(String.class,
					"select outcome from pgque.tick_now(array[?])", this.model.queue());
		}
		if (choice < 74) {
			return rollback();
		}
		return commit();
	}

	private String begin(boolean freeze) throws SQLException {
		this.frozen = freeze;
		this.session.connection()
			.setTransactionIsolation(
					freeze ? Connection.TRANSACTION_REPEATABLE_READ : Connection.TRANSACTION_READ_COMMITTED);
		this.session.value(Long.class, "select count(*) from pgque.queue");
		this.sent.push(new ArrayList<>());
		return freeze ? "begin repeatable read" : "begin";
	}

	private String send(Random random) throws SQLException {
		String queue = this.model.queue();
		List<Long> ids = switch (random.nextInt(4)) {
			case 0 -> this.session.sendBatch(queue, "a", "b", "c");
			case 1 -> List.of(this.session.send(queue, "x"), this.session.send(queue, "y"));
			case 2 -> insertDirectly();
			default -> List.of(this.session.send(queue, "x"));
		};
		this.sent.element().addAll(ids);
		return "send " + ids;
	}

	/**
	 * Insert as programs do that asked for the current event table.
	 */
	private List<Long> insertDirectly() throws SQLException {
		String table = this.session.value(String.class, "select pgque.current_event_table(?)", this.model.queue());
		Long id = this.session.value(Long.class,
				"insert into " + table + " (ev_data) values ('direct') returning ev_id");
		return (id != null) ? List.of(id) : List.of();
	}

	private String endSavepoint(boolean undo) throws SQLException {
		List<Long> ids = this.sent.pop();
		if (undo) {
			this.session.connection().rollback(this.savepoints.pop());
			return "rollback to savepoint " + ids;
		}
		this.session.connection().releaseSavepoint(this.savepoints.pop());
		this.sent.element().addAll(ids);
		return "release savepoint " + ids;
	}

	String rollback() throws SQLException {
		this.session.rollback();
		return "rollback " + end();
	}

	/**
	 * Commit, if there is a transaction.
	 */
	String commit() throws SQLException {
		this.session.commit();
		List<Long> ids = end();
		this.model.committed(ids);
		return "commit " + ids;
	}

	private List<Long> end() {
		List<Long> ids = this.sent.stream().flatMap(List::stream).sorted().toList();
		this.sent.clear();
		this.savepoints.clear();
		return ids;
	}

}
