package io.pgque.benchmarks;

import java.sql.Connection;

/**
 * A consumer that is far behind.
 */
final class CatchUpBenchmark implements Benchmark {

	@Override
	public String name() {
		return "catch-up";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		database.execute("select pgque.create_queue('q')");
		try (Connection connection = database.connect()) {
			double[] times = Cells.medians(rounds, () -> {
				Database.execute(connection, "select pgque.subscribe('q', 'c')");
				Database.execute(connection,
						"insert into pgque.tick (tick_queue, tick_id, tick_event_seq, tick_event_slots)"
								+ " select 1, nextval('pgque.event_1_tick_seq'),"
								+ " pgque.seq_getval('pgque.event_1_id_seq'), 0 from generate_series(1, 50000)");
				Database.execute(connection, "select pgque.send('q', 'last'::text)");
				Database.execute(connection, "select * from pgque.tick_now()");
				double time = Database.time(connection, "select * from pgque.receive_batch('q', 'c', 1000, 8000000)");
				Database.execute(connection, "select pgque.unsubscribe('q', 'c')");
				return time;
			});
			report.limit("a consumer 50,000 ticks behind reaches the event", times[0], "ms", 1000);
		}
	}

}
