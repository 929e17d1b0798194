package io.pgque.benchmarks;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

import io.pgque.annotation.PgqueListener;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.listener.PgqueMessageListenerContainer;

import org.springframework.context.ConfigurableApplicationContext;

/**
 * A backlog of small messages through a listener that does nothing, against a loop of
 * bare JDBC that receives and acks.
 */
final class DrainBenchmark implements Benchmark {

	private static final int EVENTS = 500_000;

	/**
	 * How many events a tick covers: as many as a page of the listener holds, and as many
	 * as a tick after commits of 20,000 events a second does.
	 */
	private static final int[] EVENTS_PER_TICK = { 1000, 100 };

	@Override
	public String name() {
		return "drain";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		for (int perTick : EVENTS_PER_TICK) {
			double[] rates = Cells.medians(Math.min(rounds, 3),
					() -> rate(server, perTick, DrainBenchmark::drainByListener),
					() -> rate(server, perTick, (database) -> drainByJdbc(database, perTick)));
			report.rate("backlog of %,d messages through a listener, %,d a tick".formatted(EVENTS, perTick), rates[0],
					rates[1], "events/s", 0.7);
		}
	}

	private static double rate(Server server, int perTick, Drain drain) throws Exception {
		Database database = server.database();
		database.execute("select pgque.create_queue('drain'), pgque.subscribe('drain', 'consumer')");
		try (Connection connection = database.connect()) {
			for (int tick = 0; tick < EVENTS / perTick; tick++) {
				Database.execute(connection, "select pgque.send_batch('drain', 't', array_fill('small'::text, array["
						+ perTick + "]))");
				Database.execute(connection, "select * from pgque.tick_now(array['drain'])");
			}
		}
		return EVENTS / (drain.nanos(database) / 1e9);
	}

	private static long drainByListener(Database database) {
		try (ConfigurableApplicationContext context = Application.start(database, List.of(Sink.class),
				"pgque.listener.auto-startup=false")) {
			LongAdder handled = context.getBean(Sink.class).handled;
			PgqueMessageListenerContainer container = context.getBean(PgqueListenerEndpointRegistry.class)
				.getListenerContainers()
				.iterator()
				.next();
			container.start();
			// From the first message on: neither loop's start counts.
			while (handled.sum() == 0) {
				LockSupport.parkNanos(100_000);
			}
			long start = System.nanoTime();
			while (handled.sum() < EVENTS) {
				LockSupport.parkNanos(1_000_000);
			}
			return System.nanoTime() - start;
		}
	}

	private static long drainByJdbc(Database database, int perTick) throws SQLException {
		try (Connection connection = database.connect();
				PreparedStatement receive = connection
					.prepareStatement("select * from pgque.receive('drain', 'consumer', " + perTick + ")");
				PreparedStatement ack = connection.prepareStatement("select pgque.ack(?)")) {
			long start = System.nanoTime();
			for (int handled = 0; handled < EVENTS;) {
				long batch = 0;
				try (ResultSet rows = receive.executeQuery()) {
					while (rows.next()) {
						batch = rows.getLong("batch_id");
						rows.getString("payload");
						handled++;
					}
				}
				ack.setLong(1, batch);
				ack.executeQuery().close();
			}
			return System.nanoTime() - start;
		}
	}

	/**
	 * Receives all events of a database.
	 */
	@FunctionalInterface
	private interface Drain {

		long nanos(Database database) throws Exception;

	}

	/**
	 * Counts.
	 */
	static class Sink {

		private final LongAdder handled = new LongAdder();

		@PgqueListener(queue = "drain", consumer = "consumer")
		void handle(String payload) {
			this.handled.increment();
		}

	}

}
