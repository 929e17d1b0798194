package io.pgque.benchmarks;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

import io.pgque.client.BatchPages;
import io.pgque.client.EventRow;
import io.pgque.client.Page;
import io.pgque.client.PgqueClient;

import org.springframework.jdbc.datasource.SingleConnectionDataSource;

/**
 * One batch of a million rows, read in pages, against a plain read of them through a
 * cursor. Run with a small heap to see that the size of a batch does not matter.
 */
final class LargeBatchBenchmark implements Benchmark {

	private static final int ROWS = 1_000_000;

	private static final int PAGE_ROWS = 1000;

	private static final long PAGE_BYTES = 8_000_000;

	private static final String PLAIN = "select ev_id, 1::bigint, ev_type, ev_data, ev_retry, ev_time, ev_extra1,"
			+ " ev_extra2, ev_extra3, ev_extra4 from plain where ev_txid < '9000000000' order by ev_id";

	@Override
	public String name() {
		return "large-batch";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		database.execute("select pgque.create_queue('q'), pgque.subscribe('q', 'c')",
				"select pgque.send_batch('q', 't', array_agg(repeat('x', 300))) from generate_series(1, " + ROWS + ")",
				"select * from pgque.tick_now()", SendBenchmark.plainTable(),
				"insert into plain select * from pgque.event_1_0", "vacuum plain, pgque.event_1_0");
		try (Connection connection = database.connect()) {
			PgqueClient client = new PgqueClient(new SingleConnectionDataSource(connection, true));
			double[] times = Cells.medians(rounds, () -> time(() -> readPages(client)),
					() -> time(() -> readPlain(connection)));
			report.duration("batch of %,d rows, in pages of %,d".formatted(ROWS, PAGE_ROWS), times[0], times[1], "ms",
					1.5);
		}
	}

	private static long readPages(PgqueClient client) {
		Page page = client.receiveBatch("q", "c", PAGE_ROWS, PAGE_BYTES);
		BatchPages pages = client.batchPages(page.batchId(), PAGE_ROWS, PAGE_BYTES);
		long rows = page.rows().size();
		while (page.more()) {
			List<EventRow> last = page.rows();
			page = pages.next(last.get(last.size() - 1).id());
			rows += page.rows().size();
		}
		return rows;
	}

	private static long readPlain(Connection connection) throws SQLException {
		connection.setAutoCommit(false);
		try (Statement statement = connection.createStatement()) {
			statement.setFetchSize(PAGE_ROWS);
			long count = 0;
			try (ResultSet rows = statement.executeQuery(PLAIN)) {
				for (; rows.next(); count++) {
					for (int column = 1; column <= 10; column++) {
						rows.getString(column);
					}
				}
			}
			return count;
		}
		finally {
			connection.setAutoCommit(true);
		}
	}

	private static double time(Read read) throws SQLException {
		long start = System.nanoTime();
		long rows = read.run();
		if (rows != ROWS) {
			throw new IllegalStateException("%,d rows instead of %,d".formatted(rows, ROWS));
		}
		return (System.nanoTime() - start) / 1e6;
	}

	/**
	 * Reads all rows.
	 */
	@FunctionalInterface
	private interface Read {

		long run() throws SQLException;

	}

}
