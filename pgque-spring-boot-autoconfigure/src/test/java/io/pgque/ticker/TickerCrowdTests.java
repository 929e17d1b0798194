package io.pgque.ticker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.BatchPages;
import io.pgque.client.EventRow;
import io.pgque.client.Page;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueTemplate;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Several instances tick as often as they can while many send: each event is delivered
 * once. The system property {@code pgque.crowd.seconds} says how long; 2 by default.
 */
@PgqueDatabase
class TickerCrowdTests {

	private static final int INSTANCES = 4;

	private static final int SENDERS = 8;

	private final TestDatabase database;

	private final AtomicBoolean over = new AtomicBoolean();

	TickerCrowdTests(TestDatabase database) {
		this.database = database;
	}

	@Test
	void eachEventIsDeliveredOnce() throws Exception {
		PgqueClient client = new PgqueClient(this.database.pool(2));
		client.createQueue("crowd");
		client.subscribe("crowd", "c");
		client.setQueueConfig("crowd", "rotation_period", "PT0.5S");
		ExecutorService executor = Executors.newFixedThreadPool(SENDERS);
		List<PgqueTicker> tickers = new ArrayList<>();
		try {
			for (int i = 0; i < INSTANCES; i++) {
				tickers.add(new PgqueTicker(this.database.pool(3),
						new TickerSettings(TickerMode.ALWAYS, Duration.ofMillis(1), true, Duration.ZERO,
								Duration.ofMillis(50), Duration.ofMillis(50), Duration.ofMillis(50))));
			}
			tickers.forEach(PgqueTicker::start);
			List<Future<List<Long>>> sending = new ArrayList<>();
			for (int i = 0; i < SENDERS; i++) {
				sending.add(executor.submit(sender(tickers.get(i % INSTANCES))));
			}
			List<Long> received = new ArrayList<>();
			long end = System.nanoTime() + Duration.ofSeconds(Long.getLong("pgque.crowd.seconds", 2)).toNanos();
			while (System.nanoTime() < end) {
				receive(client, received);
			}
			this.over.set(true);
			List<Long> sent = new ArrayList<>();
			for (Future<List<Long>> sender : sending) {
				sent.addAll(sender.get());
			}
			await().atMost(Duration.ofSeconds(20)).until(() -> {
				receive(client, received);
				return received.size() >= sent.size();
			});
			await().during(Duration.ofMillis(300)).until(() -> !receive(client, received));
			assertThat(received).doesNotHaveDuplicates();
			Set<Long> expected = new HashSet<>(sent);
			assertThat(new HashSet<>(received)).isEqualTo(expected);
			assertThat(expected).hasSizeGreaterThan(100);
		}
		finally {
			this.over.set(true);
			tickers.forEach(PgqueTicker::stop);
			executor.shutdownNow();
		}
	}

	/**
	 * Sends in transactions, every other one of which takes more round trips.
	 */
	private Callable<List<Long>> sender(PgqueTicker ticker) {
		HikariDataSource pool = this.database.pool(1);
		PgqueTemplate template = new PgqueTemplate(pool, new Jackson2MessageConverter());
		template.setCommitListener(ticker);
		TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(pool));
		return () -> {
			List<Long> sent = new ArrayList<>();
			for (int i = 0; !this.over.get(); i++) {
				List<Long> ids = new ArrayList<>();
				boolean slow = i % 2 == 0;
				transaction.executeWithoutResult((status) -> {
					ids.add(template.send("crowd", "a"));
					if (slow) {
						template.sendBatch("crowd", List.of("b", "c", "d")).forEach(ids::add);
					}
				});
				sent.addAll(ids);
			}
			return sent;
		};
	}

	private static boolean receive(PgqueClient client, List<Long> received) {
		Page page = client.receiveBatch("crowd", "c", 10_000, 10_000_000);
		if (page.isEmpty()) {
			return false;
		}
		long batchId = page.batchId();
		page.rows().stream().map(EventRow::id).forEach(received::add);
		BatchPages pages = client.batchPages(batchId, 10_000, 10_000_000);
		while (page.more()) {
			List<EventRow> rows = page.rows();
			page = pages.next(rows.get(rows.size() - 1).id());
			page.rows().stream().map(EventRow::id).forEach(received::add);
		}
		client.settle(batchId, null, List.of());
		return true;
	}

}
