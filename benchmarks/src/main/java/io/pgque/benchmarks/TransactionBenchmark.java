package io.pgque.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import io.pgque.core.PgqueEvent;
import io.pgque.annotation.PgqueListener;
import io.pgque.core.PgqueTemplate;

import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * What events cost the business transactions that send them.
 */
final class TransactionBenchmark implements Benchmark {

	private static final long CELL_NANOS = 3_000_000_000L;

	private static final int THREADS = 4;

	private static final int STATEMENTS = 200;

	private static final long STATEMENTS_NANOS = 1_000_000_000L;

	private static final String BUSINESS = "insert into orders (customer, amount) values (?, ?)";

	private static final String PLAIN = "insert into plain (ev_type, ev_data) values (?, ?)";

	private static final String PLAIN_RETURNING = PLAIN + " returning ev_id";

	@Override
	public String name() {
		return "transaction";
	}

	@Override
	public void run(Server server, int rounds, Report report) throws Exception {
		Database database = server.database();
		database.execute("create table orders (id bigserial primary key, customer text, amount int)",
				"select pgque.create_queue('orders'), pgque.create_queue('nobody')", SendBenchmark.plainTable());
		try (ConfigurableApplicationContext context = Application.start(database, List.of())) {
			Service service = new Service(context);
			double[] times = Cells.medians(rounds, () -> millis(() -> service.order(1)),
					() -> millis(() -> service.order(0)));
			report.duration("business transaction with an event, nobody consuming", times[0], times[1], "ms", 1.5);
			times = Cells.medians(rounds, () -> millis(() -> service.order(10)), () -> millis(() -> service.order(1)));
			report.duration("business transaction with 10 events, against one", times[0], times[1], "ms", 1.3);
			for (String commit : List.of("off", "on")) {
				times = Cells.medians(rounds, () -> service.statementMillis(commit, service::send),
						() -> service.statementMillis(commit, service::insert));
				report.duration("send inside a transaction, synchronous_commit " + commit, times[0], times[1], "ms",
						1.25);
				times = Cells.medians(rounds, () -> service.statementMillis(commit, service::send),
						() -> service.statementMillis(commit, service::insertOnly));
				report.duration("send inside a transaction, id of the insert unread, commit " + commit, times[0],
						times[1], "ms");
			}
		}
		Database consumed = server.database();
		consumed.execute("create table orders (id bigserial primary key, customer text, amount int)");
		try (ConfigurableApplicationContext context = Application.start(consumed, List.of(Sink.class))) {
			Service service = new Service(context);
			double[] times = Cells.medians(rounds, () -> millis(() -> service.order(1)),
					() -> millis(() -> service.order(0)));
			report.duration("business transaction with an event, consumed by the application", times[0], times[1], "ms",
					2.2);
		}
	}

	/**
	 * Run transactions in several threads.
	 * @return how long one takes, in milliseconds
	 */
	private static double millis(Runnable transaction) throws Exception {
		ExecutorService executor = Executors.newFixedThreadPool(THREADS);
		try {
			List<Callable<Long>> work = new ArrayList<>();
			long end = System.nanoTime() + CELL_NANOS;
			for (int i = 0; i < THREADS; i++) {
				work.add(() -> {
					long count = 0;
					for (; System.nanoTime() < end; count++) {
						transaction.run();
					}
					return count;
				});
			}
			long count = 0;
			for (Future<Long> future : executor.invokeAll(work)) {
				count += future.get();
			}
			return THREADS * CELL_NANOS / 1e6 / count;
		}
		finally {
			executor.shutdown();
		}
	}

	/**
	 * A service of the application.
	 */
	private static final class Service {

		private final TransactionTemplate transaction;

		private final JdbcTemplate jdbc;

		private final PgqueTemplate template;

		private Service(ConfigurableApplicationContext context) {
			this.transaction = new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
			this.jdbc = context.getBean(JdbcTemplate.class);
			this.template = context.getBean(PgqueTemplate.class);
		}

		private void order(int events) {
			this.transaction.executeWithoutResult((status) -> {
				this.jdbc.update(BUSINESS, "somebody", 17);
				for (int i = 0; i < events; i++) {
					this.template.publish(new OrderPlaced(i, "somebody", 17));
				}
			});
		}

		private void send() {
			this.template.send("nobody", "t", "the payload of an event");
		}

		private void insert() {
			this.jdbc.queryForObject(PLAIN_RETURNING, Long.class, "t", "the payload of an event");
		}

		private void insertOnly() {
			this.jdbc.update(PLAIN, "t", "the payload of an event");
		}

		/**
		 * Run transactions of many statements, as often as the JVM needs to know them.
		 * @return how long a statement takes, in milliseconds
		 */
		private double statementMillis(String commit, Runnable statement) {
			long end = System.nanoTime() + STATEMENTS_NANOS;
			long[] nanos = new long[1];
			long count = 0;
			for (; System.nanoTime() < end; count += STATEMENTS) {
				this.transaction.executeWithoutResult((status) -> {
					this.jdbc.execute("set local synchronous_commit = " + commit);
					long start = System.nanoTime();
					for (int i = 0; i < STATEMENTS; i++) {
						statement.run();
					}
					nanos[0] += System.nanoTime() - start;
				});
			}
			return nanos[0] / 1e6 / count;
		}

	}

	/**
	 * What happened.
	 */
	@PgqueEvent(queue = "orders", type = "order.placed")
	record OrderPlaced(int number, String customer, int amount) {
	}

	/**
	 * Consumes.
	 */
	static class Sink {

		@PgqueListener(queue = "orders", consumer = "sink")
		void handle(OrderPlaced event) {
		}

	}

}
