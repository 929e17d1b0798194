package io.pgque.benchmarks;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Sends against a plain insert into a table with the same columns and index.
 */
final class SendBenchmark implements Benchmark {

	private static final long CELL_NANOS = 2_000_000_000L;

	private static final String PAYLOAD = "x".repeat(900);

	private static final String PLAIN = "insert into plain (ev_type, ev_data) values ('t', ?) returning ev_id";

	private static final String SEND = "select pgque.send('q', 't', ?::text)";

	@Override
	public String name() {
		return "send";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		database.execute("select pgque.create_queue('q')", plainTable());
		for (String commit : List.of("off", "on")) {
			for (int clients : new int[] { 1, 8 }) {
				double[] rates = Cells.medians(rounds, () -> rate(database, clients, commit, SEND),
						() -> rate(database, clients, commit, PLAIN));
				report.rate("send, %d clients, synchronous_commit %s".formatted(clients, commit), rates[0], rates[1],
						"events/s", (clients == 1) ? 0.75 : 0.65);
			}
		}
		String rows = "array_fill(repeat('x', 900), array[100])";
		for (String commit : List.of("off", "on")) {
			double[] rates = Cells.medians(rounds,
					() -> batchRate(database, commit, "select pgque.send_batch('q', 't', " + rows + ")"),
					() -> batchRate(database, commit,
							"insert into plain (ev_type, ev_data) select 't', unnest(" + rows + ") returning ev_id"));
			report.rate("send_batch of 100, synchronous_commit " + commit, rates[0], rates[1], "events/s", 0.85);
		}
	}

	static String plainTable() {
		return """
				create table plain (like pgque.event_template including defaults);
				create sequence plain_seq;
				alter table plain alter ev_id set default nextval('plain_seq'), alter ev_queue set default 1,
				    alter ev_slot set default 0, set (autovacuum_enabled = false, toast.autovacuum_enabled = false);
				create index on plain (ev_txid)""";
	}

	private static void reset(Database database) throws SQLException {
		database.execute("truncate plain, pgque.event_1_0", "checkpoint");
	}

	private static double rate(Database database, int clients, String commit, String sql) throws Exception {
		reset(database);
		ExecutorService executor = Executors.newFixedThreadPool(clients);
		try {
			List<Callable<Long>> work = new ArrayList<>();
			long end = System.nanoTime() + CELL_NANOS;
			for (int i = 0; i < clients; i++) {
				work.add(() -> {
					try (Connection connection = database.connect()) {
						Database.execute(connection, "set synchronous_commit = " + commit);
						try (PreparedStatement statement = connection.prepareStatement(sql)) {
							long count = 0;
							for (; System.nanoTime() < end; count++) {
								statement.setString(1, PAYLOAD);
								statement.executeQuery().close();
							}
							return count;
						}
					}
				});
			}
			long sum = 0;
			for (Future<Long> future : executor.invokeAll(work)) {
				sum += future.get();
			}
			return sum / (CELL_NANOS / 1e9);
		}
		finally {
			executor.shutdown();
		}
	}

	private static double batchRate(Database database, String commit, String sql) throws SQLException {
		reset(database);
		try (Connection connection = database.connect()) {
			Database.execute(connection, "set synchronous_commit = " + commit);
			long start = System.nanoTime();
			long count = 0;
			try (PreparedStatement statement = connection.prepareStatement(sql)) {
				for (; System.nanoTime() - start < CELL_NANOS; count += 100) {
					statement.executeQuery().close();
				}
			}
			return count / ((System.nanoTime() - start) / 1e9);
		}
	}

}
