package io.pgque.benchmarks;

import java.sql.Connection;

/**
 * A tick pass over many queues in which nothing happens.
 */
final class IdleQueuesBenchmark implements Benchmark {

	@Override
	public String name() {
		return "idle-queues";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		try (Connection connection = database.connect()) {
			for (int i = 0; i < 1000; i++) {
				Database.execute(connection, "select pgque.create_queue('idle-" + i + "')");
			}
			double[] times = Cells.medians(Math.max(rounds, 20),
					() -> Database.time(connection, "select * from pgque.tick_now()"));
			report.limit("one tick pass over 1,000 idle queues, warm", times[0], "ms", 10);
		}
	}

}
