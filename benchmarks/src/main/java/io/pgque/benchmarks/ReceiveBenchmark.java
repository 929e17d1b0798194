package io.pgque.benchmarks;

import java.sql.Connection;

/**
 * A large batch against a plain select of its rows.
 */
final class ReceiveBenchmark implements Benchmark {

	@Override
	public String name() {
		return "receive";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		database.execute("select pgque.create_queue('q'), pgque.subscribe('q', 'c')",
				"select pgque.send_batch('q', 't', array_agg(repeat('x', 900))) from generate_series(1, 200000)",
				"select * from pgque.tick_now()", SendBenchmark.plainTable(),
				"insert into plain select * from pgque.event_1_0");
		String rows = "select count(*), sum(length(payload)) from pgque.receive('q', 'c', null)";
		String plain = "select count(*), sum(length(ev_data)) from (select ev_id, ev_time, ev_retry, ev_type, ev_data,"
				+ " ev_extra1, ev_extra2, ev_extra3, ev_extra4 from plain where ev_txid < '9000000000' order by ev_id offset 0) e";
		try (Connection connection = database.connect()) {
			double[] times = Cells.medians(rounds, () -> Database.time(connection, rows),
					() -> Database.time(connection, plain));
			report.rate("receive of 200,000 rows, counted in the server", 200_000 / times[0], 200_000 / times[1],
					"rows/ms", 0.8);
			double[] read = Cells.medians(rounds,
					() -> Database.time(connection, "select * from pgque.receive('q', 'c', null)"),
					() -> Database.time(connection, "select ev_id, 1::bigint, ev_type, ev_data, ev_retry, ev_time,"
							+ " ev_extra1, ev_extra2, ev_extra3, ev_extra4 from plain where ev_txid < '9000000000' order by ev_id"));
			report.rate("receive of 200,000 rows, read by the client", 200_000 / read[0], 200_000 / read[1], "rows/ms",
					0.8);
		}
	}

}
