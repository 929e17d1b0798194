package io.pgque.benchmarks;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

import io.pgque.annotation.PgqueListener;

import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/**
 * What applications with ten queues and ten listeners ask of the database while nothing
 * happens. Each of their statements is a transaction, so transactions are counted.
 */
final class IdleApplicationBenchmark implements Benchmark {

	private static final int SETTLE_SECONDS = 15;

	private static final int SECONDS = 60;

	@Override
	public String name() {
		return "idle-application";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		List<ConfigurableApplicationContext> applications = new ArrayList<>();
		try {
			applications.add(Application.start(database, List.of(TenListeners.class)));
			measure(database, "one idle application", 12, 1, report);
			while (applications.size() < 10) {
				applications.add(Application.start(database, List.of(TenListeners.class),
						"spring.datasource.hikari.maximum-pool-size=4"));
			}
			measure(database, "ten idle applications", 60, 5, report);
		}
		finally {
			applications.forEach(ConfigurableApplicationContext::close);
		}
	}

	private static void measure(Database database, String what, int statements, int kilobytes, Report report)
			throws SQLException {
		LockSupport.parkNanos(SETTLE_SECONDS * 1_000_000_000L);
		long[] before = figures(database);
		long start = System.nanoTime();
		LockSupport.parkNanos(SECONDS * 1_000_000_000L);
		long[] after = figures(database);
		double seconds = (System.nanoTime() - start) / 1e9;
		report.limit(what + ", statements", (after[0] - before[0]) / seconds, "per s", statements);
		report.limit(what + ", WAL", (after[1] - before[1]) / 1024.0 / seconds, "kB/s", kilobytes);
	}

	private static long[] figures(Database database) throws SQLException {
		try (Connection connection = database.connect(); Statement statement = connection.createStatement()) {
			// Sessions report what they did with a delay of up to a second when idle.
			LockSupport.parkNanos(1_500_000_000L);
			try (ResultSet row = statement.executeQuery("select xact_commit + xact_rollback,"
					+ " pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint from pg_stat_database"
					+ " where datname = current_database()")) {
				row.next();
				return new long[] { row.getLong(1), row.getLong(2) };
			}
		}
	}

	@Configuration(proxyBeanMethods = false)
	static class TenListeners {

		@PgqueListener(queue = "idle0", consumer = "c")
		@PgqueListener(queue = "idle1", consumer = "c")
		@PgqueListener(queue = "idle2", consumer = "c")
		@PgqueListener(queue = "idle3", consumer = "c")
		@PgqueListener(queue = "idle4", consumer = "c")
		@PgqueListener(queue = "idle5", consumer = "c")
		@PgqueListener(queue = "idle6", consumer = "c")
		@PgqueListener(queue = "idle7", consumer = "c")
		@PgqueListener(queue = "idle8", consumer = "c")
		@PgqueListener(queue = "idle9", consumer = "c")
		void onMessage(String message) {
			throw new IllegalStateException("Nobody sends");
		}

	}

}
