package io.pgque.benchmarks;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * Batches while another session holds a snapshot.
 */
final class HeldSnapshotBenchmark implements Benchmark {

	private static final int BATCHES = Integer.getInteger("benchmarks.held-batches", 50_000);

	@Override
	public String name() {
		return "held-snapshot";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		database.execute("select pgque.create_queue('q'), pgque.subscribe('q', 'c')",
				"select pgque.create_queue('warm-up'), pgque.subscribe('warm-up', 'c')");
		try (Connection holder = database.connect(); Connection connection = database.connect()) {
			holder.setAutoCommit(false);
			holder.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
			Database.execute(holder, "select count(*) from pgque.queue");
			Database.execute(connection, "set synchronous_commit = off");
			thousandBatches(connection, "warm-up");
			List<Double> thousands = new ArrayList<>();
			for (int thousand = 0; thousand < BATCHES / 1000; thousand++) {
				thousands.add(thousandBatches(connection, "q"));
				Database.execute(connection, "select pgque.maint()");
			}
			report.duration("the last 1,000 of %,d batches under a held snapshot".formatted(BATCHES),
					thousands.get(thousands.size() - 1), thousands.get(0), "ms", 1.2);
		}
	}

	/**
	 * Make, open and finish a thousand batches.
	 * @return how long opening and finishing took, in milliseconds
	 */
	private static double thousandBatches(Connection connection, String queue) throws SQLException {
		long time = 0;
		for (int i = 0; i < 1000; i++) {
			Database.execute(connection, "select pgque.send('" + queue + "', 'event'::text)");
			Database.execute(connection, "select * from pgque.tick_now(array['" + queue + "'])");
			long start = System.nanoTime();
			Database.execute(connection, "select * from pgque.receive_batch('" + queue + "', 'c', 1000, 8000000)");
			Database.execute(connection,
					"select pgque.ack(sub_batch) from pgque.subscription where sub_batch is not null");
			time += System.nanoTime() - start;
		}
		return time / 1e6;
	}

}
