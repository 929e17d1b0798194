package io.pgque.core;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.InvalidMessageException;
import io.pgque.QueueNotFoundException;
import io.pgque.client.EventRow;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

/**
 * Tests for sending on other threads.
 */
@PgqueDatabase
class AsyncSendTests {

	private static int number;

	private final TestDatabase database;

	private final String queue = "async" + (++number);

	private final List<Set<String>> commits = new CopyOnWriteArrayList<>();

	private HikariDataSource pool;

	private PgqueClient client;

	private PgqueTemplate template;

	AsyncSendTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.pool = this.database.pool(4);
		this.client = new PgqueClient(this.pool);
		this.template = new PgqueTemplate(this.pool, new Jackson2MessageConverter());
		this.template.setCommitListener(this.commits::add);
		this.client.createQueue(this.queue);
		this.client.subscribe(this.queue, "c");
	}

	@AfterEach
	void tearDown() {
		this.template.destroy();
		await().until(() -> Thread.getAllStackTraces()
			.keySet()
			.stream()
			.noneMatch((thread) -> thread.getName().startsWith("pgque-send-")));
		this.pool.close();
	}

	@Test
	void futureHasTheIdOfWhatIsCommitted() throws Exception {
		List<CompletableFuture<Long>> sends = new ArrayList<>();
		sends.add(this.template.sendAsync(this.queue, List.of(1)));
		sends.add(this.template.sendAsync(this.queue, "t", null));
		sends.add(this.template.sendAsync(this.queue, (message) -> message.payload("x").key("k")));
		for (int i = 0; i < 50; i++) {
			sends.add(this.template.sendAsync(this.queue, "payload " + i));
		}
		List<Long> ids = new ArrayList<>();
		for (CompletableFuture<Long> send : sends) {
			ids.add(send.get(10, TimeUnit.SECONDS));
		}
		this.client.tick(List.of(this.queue));
		List<EventRow> rows = this.client.receiveBatch(this.queue, "c", 100, 1_000_000).rows();
		assertThat(rows).extracting(EventRow::id).containsExactlyInAnyOrderElementsOf(ids);
		assertThat(this.commits).hasSize(53).containsOnly(Set.of(this.queue));
	}

	@Test
	void insideATransactionItIsRefused() {
		new TransactionTemplate(new JdbcTransactionManager(this.pool)).executeWithoutResult(
				(status) -> assertThatIllegalStateException().isThrownBy(() -> this.template.sendAsync(this.queue, "x"))
					.withMessageContaining("can't join the transaction of its caller")
					.withMessageContaining(this.queue));
		assertThat(this.commits).isEmpty();
	}

	@Test
	void mistakesAreToldByTheCallAndWhatTheDatabaseSaysByTheFuture() {
		assertThatExceptionOfType(InvalidMessageException.class)
			.isThrownBy(() -> this.template.sendAsync(this.queue, "a\0b"));
		assertThatExceptionOfType(ExecutionException.class)
			.isThrownBy(() -> this.template.sendAsync("nowhere", "x").get(10, TimeUnit.SECONDS))
			.withCauseInstanceOf(QueueNotFoundException.class);
	}

	@Test
	void applicationMayHaveItsExecutor() throws Exception {
		List<Runnable> tasks = new ArrayList<>();
		this.template.setAsyncExecutor(tasks::add);
		CompletableFuture<Long> send = this.template.sendAsync(this.queue, "x");
		assertThat(send).isNotDone();
		tasks.get(0).run();
		assertThat(send.get()).isPositive();
	}

}
