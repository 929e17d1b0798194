package io.pgque.benchmarks;

import java.sql.Connection;

/**
 * A batch of which every message failed, and its retries.
 */
final class SettleBenchmark implements Benchmark {

	private static final String RECEIVE = "select * from pgque.receive_batch('q', 'c', 20000, 1000000000)";

	@Override
	public String name() {
		return "settle";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		database.execute("select pgque.create_queue('q'), pgque.subscribe('q', 'c')",
				"select pgque.set_queue_config('q', 'max_retries', '1000000')");
		try (Connection connection = database.connect()) {
			double[] times = Cells.medians(rounds, () -> nackAll(connection, 5_000), () -> moveAll(connection, 10_000));
			report.limit("a batch of 5,000 nacked and acked", times[0], "ms", 200);
			report.limit("10,000 due retries back in the queue", times[1], "ms", 300);
		}
	}

	private static double nackAll(Connection connection, int count) throws Exception {
		fill(connection, count);
		double time = Database.time(connection, settle("interval '1 hour'"));
		Database.execute(connection, "delete from pgque.retry_queue");
		return time;
	}

	private static double moveAll(Connection connection, int count) throws Exception {
		fill(connection, count);
		Database.execute(connection, settle("interval '0'"));
		double time = Database.time(connection, "select pgque.maint_retry_events()");
		Database.execute(connection, "select * from pgque.tick_now()");
		Database.execute(connection, RECEIVE);
		Database.execute(connection, "select pgque.ack(sub_batch) from pgque.subscription");
		return time;
	}

	private static void fill(Connection connection, int count) throws Exception {
		Database.execute(connection,
				"select pgque.send_batch('q', 't', array_fill(repeat('x', 900), array[" + count + "]))");
		Database.execute(connection, "select * from pgque.tick_now()");
		Database.execute(connection, RECEIVE);
		Database.execute(connection,
				"create temporary table if not exists nacks (ids bigint[], batch bigint); truncate nacks");
		Database.execute(connection,
				"insert into nacks select array_agg(msg_id), min(batch_id) from (" + RECEIVE + ") b");
	}

	private static String settle(String delay) {
		return "select s.* from nacks, lateral pgque.settle(batch, null, ids, array_fill(" + delay
				+ ", array[cardinality(ids)]), array_fill('failed'::text, array[cardinality(ids)]),"
				+ " array_fill(false, array[cardinality(ids)])) s";
	}

}
