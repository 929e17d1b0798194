package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.EventExtras;
import io.pgque.event.BatchAbortedEvent;
import io.pgque.event.MessageDeadLetteredEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;
import org.springframework.orm.jpa.SharedEntityManagerCreator;
import org.springframework.orm.jpa.persistenceunit.PersistenceManagedTypes;
import org.springframework.orm.jpa.vendor.HibernateJpaVendorAdapter;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for batches that are received, handled and settled in one transaction.
 */
@PgqueDatabase
class TransactionalContainerTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	private HikariDataSource pool;

	private JdbcTemplate jdbc;

	TransactionalContainerTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.pool = this.database.pool(3);
		this.fixture = new ListenerFixture(this.database, this.pool);
		this.fixture.properties.setTransactional(true);
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		this.jdbc = new JdbcTemplate(this.pool);
		this.database.execute("create table if not exists effect (id bigint primary key, payload text not null)");
		this.database.execute("truncate effect cascade");
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void failedHandlerIsUndoneAloneAndEverythingElseIsOneCommit() {
		var container = container("savepoints", new JdbcTransactionManager(this.pool), (message) -> {
			insert(message.id(), message.payload());
			if (message.payload().equals("2")) {
				throw new IllegalStateException("no");
			}
			if (message.payload().equals("3")) {
				// Aborts the transaction but for the savepoint.
				insert(message.id(), message.payload());
			}
		});
		this.fixture.send("savepoints", 5);
		container.start();
		await().until(() -> container.getCounters().batchesSettled() == 1);
		await().until(() -> this.fixture.isDrained("savepoints"));
		assertThat(effects()).containsExactly("1", "4", "5");
		assertThat(this.fixture.pendingRetries("savepoints")).isEqualTo(2);
		assertThat(this.database.value(Integer.class, "select count(distinct xmin::text)::int from effect"))
			.as("savepoints are transactions of their own to PostgreSQL")
			.isPositive();
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(3));
	}

	@Test
	void transactionThatAHandlersServiceMarkedForRollbackIsAFailureOfThatMessage() {
		JdbcTransactionManager manager = new JdbcTransactionManager(this.pool);
		TransactionTemplate service = new TransactionTemplate(manager);
		var container = container("marked", manager, (message) -> service.executeWithoutResult((status) -> {
			insert(message.id(), message.payload());
			if (message.payload().equals("2")) {
				status.setRollbackOnly();
			}
		}));
		this.fixture.send("marked", 3);
		container.start();
		await().until(() -> container.getCounters().batchesSettled() == 1);
		assertThat(effects()).containsExactly("1", "3");
		assertThat(this.fixture.pendingRetries("marked")).isOne();
	}

	@Test
	void withoutSavepointsTheBatchRunsAgainWithoutTheMessageThatFailed() {
		EntityManagerFactory entities = entities();
		try {
			EntityManager manager = SharedEntityManagerCreator.createSharedEntityManager(entities);
			JpaTransactionManager transactions = new JpaTransactionManager(entities);
			List<String> calls = new CopyOnWriteArrayList<>();
			var container = container("jpa", transactions, (message) -> {
				calls.add(message.payload());
				manager.persist(new Effect(message.id(), message.payload()));
				if (message.payload().equals("2") || message.payload().equals("4")) {
					manager.flush();
					throw new IllegalStateException("no");
				}
			});
			this.fixture.send("jpa", 5);
			container.start();
			await().until(() -> container.getCounters().batchesSettled() == 1);
			await().until(() -> this.fixture.isDrained("jpa"));
			assertThat(effects()).containsExactly("1", "3", "5");
			assertThat(this.fixture.pendingRetries("jpa")).isEqualTo(2);
			assertThat(calls).containsExactly("1", "2", "1", "3", "4", "1", "3", "5");
			await().untilAsserted(() -> assertThat(container.getCounters())
				.extracting(ListenerCounters::handled, ListenerCounters::retried, ListenerCounters::staleSettles)
				.containsExactly(3L, 2L, 0L));
		}
		finally {
			entities.close();
		}
	}

	@Test
	void failedSettlementUndoesTheEffects() {
		AtomicInteger calls = new AtomicInteger();
		var container = container("atomic", new JdbcTransactionManager(this.pool), (message) -> {
			insert(message.id(), message.payload());
			if (calls.incrementAndGet() == 2) {
				// The connection dies before the settlement.
				this.jdbc.queryForObject("select pg_terminate_backend(pg_backend_pid())", Boolean.class);
			}
		});
		this.fixture.send("atomic", 3);
		container.start();
		await().until(() -> this.fixture.isDrained("atomic"));
		assertThat(effects()).containsExactly("1", "2", "3");
		assertThat(calls.get()).isGreaterThan(3);
		assertThat(this.fixture.pendingRetries("atomic")).isZero();
	}

	@Test
	void outcomesAreToldAfterTheCommitOnly() {
		this.database.execute("create table if not exists claim"
				+ " (id bigint references effect (id) on delete cascade deferrable initially deferred)");
		AtomicInteger runs = new AtomicInteger();
		this.fixture.errorHandler = new DefaultPgqueErrorHandler();
		var container = container("commit_fails", new JdbcTransactionManager(this.pool), (message) -> {
			if (message.payload().equals("2")) {
				throw new RejectMessageException("no");
			}
			if (runs.incrementAndGet() <= 2) {
				// Refused by the commit.
				this.jdbc.update("insert into claim values (-1)");
			}
		});
		this.fixture.send("commit_fails", 2);
		container.start();
		await().until(() -> container.getCounters().failures() == 2);
		await().until(() -> this.fixture.isDrained("commit_fails"));
		await().untilAsserted(() -> assertThat(container.getCounters())
			.extracting(ListenerCounters::handled, ListenerCounters::deadLettered, ListenerCounters::batchesSettled)
			.containsExactly(1L, 1L, 1L));
		assertThat(this.fixture.events(MessageDeadLetteredEvent.class)).hasSize(1);
		assertThat(this.fixture.deadLetters("commit_fails")).isOne();
	}

	@Test
	void abortIsToldAfterTheCommitOnly() {
		this.database.execute("create table if not exists claim"
				+ " (id bigint references effect (id) on delete cascade deferrable initially deferred)");
		AtomicInteger runs = new AtomicInteger();
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.abortBatch(Duration.ofMillis(50));
		var container = container("abort_fails", new JdbcTransactionManager(this.pool), (message) -> {
			if (message.payload().equals("2") && runs.get() <= 2) {
				throw new IllegalStateException("down");
			}
			if (runs.incrementAndGet() == 1) {
				this.jdbc.update("insert into claim values (-1)");
			}
		});
		this.fixture.send("abort_fails", 2);
		container.start();
		await().until(() -> container.getCounters().failures() == 1);
		await().until(() -> !this.fixture.events(BatchAbortedEvent.class).isEmpty());
		assertThat(container.getCounters().batchesAborted())
			.isEqualTo(this.fixture.events(BatchAbortedEvent.class).size());
		runs.set(10);
		await().until(() -> this.fixture.isDrained("abort_fails"));
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(2));
	}

	@ParameterizedTest
	@ValueSource(booleans = { true, false })
	void handlerThatAlwaysFailsIsGivenUpAndStopEndsItsRepetition(boolean savepoints) {
		EntityManagerFactory entities = entities();
		try {
			this.fixture.errorHandler = new DefaultPgqueErrorHandler(
					new BackOffSettings(Duration.ofMillis(1), 1, Duration.ofMillis(1), Duration.ZERO));
			List<Integer> attempts = new CopyOnWriteArrayList<>();
			String queue = "always_" + savepoints;
			var container = container(queue,
					savepoints ? new JdbcTransactionManager(this.pool) : new JpaTransactionManager(entities),
					(message) -> {
						attempts.add(message.deliveryAttempt());
						throw new IllegalStateException("always");
					});
			this.fixture.client.setQueueConfig(queue, "max_retries", "2");
			this.fixture.send(queue, 1);
			container.start();
			await().until(() -> {
				this.fixture.retryNow(queue);
				return this.fixture.deadLetters(queue) == 1;
			});
			container.stop();
			assertThat(attempts).containsExactly(1, 2, 3);
			assertThat(this.fixture.isDrained(queue)).isTrue();
			this.fixture.send(queue, 1);
			container.start();
			await().until(() -> attempts.size() > 3);
			container.stop();
			int seen = attempts.size();
			this.fixture.retryNow(queue);
			assertThat(attempts).hasSize(seen);
		}
		finally {
			entities.close();
		}
	}

	/**
	 * The transaction is aborted then, and mustn't be what the next batch finds.
	 */
	@ParameterizedTest
	@ValueSource(booleans = { true, false })
	void settlementThatFailsInItsTransactionLeavesTheNextBatchesAlone(boolean savepoints) {
		EntityManagerFactory entities = entities();
		try {
			String queue = "refused_" + savepoints;
			var container = container(queue,
					savepoints ? new JdbcTransactionManager(this.pool) : new JpaTransactionManager(entities),
					(message) -> {
						if (message.payload().equals("2")) {
							throw new IllegalStateException("no");
						}
						insert(message.id(), message.payload());
					});
			this.database.execute("alter table pgque.retry_queue add constraint refused check (false) not valid");
			try {
				this.fixture.send(queue, 3);
				container.start();
				await().until(() -> container.getCounters().failures() >= 2);
				assertThat(effects()).isEmpty();
				assertThat(container.getCounters().handled()).isZero();
			}
			finally {
				this.database.execute("alter table pgque.retry_queue drop constraint refused");
			}
			await().until(() -> this.fixture.isDrained(queue));
			this.fixture.send(queue, 1);
			await().until(() -> container.getCounters().handled() == 3);
			assertThat(effects()).containsExactly("1", "3", "1");
			assertThat(this.fixture.pendingRetries(queue)).isOne();
		}
		finally {
			entities.close();
		}
	}

	@Test
	void stopSettlesWhatIsDone() throws Exception {
		CountDownLatch entered = new CountDownLatch(1);
		CountDownLatch mayLeave = new CountDownLatch(1);
		var container = container("tx_stop", new JdbcTransactionManager(this.pool), (message) -> {
			insert(message.id(), message.payload());
			if (message.payload().equals("2")) {
				entered.countDown();
				mayLeave.await();
			}
		});
		this.fixture.send("tx_stop", 4);
		container.start();
		entered.await();
		CountDownLatch stopped = new CountDownLatch(1);
		container.stop(stopped::countDown);
		await().until(() -> Thread.getAllStackTraces()
			.keySet()
			.stream()
			.anyMatch((thread) -> thread.getName().equals("pgque-stop-tx_stop.consumer")));
		mayLeave.countDown();
		stopped.await();
		assertThat(effects()).contains("1", "2");
		container.start();
		await().until(() -> this.fixture.isDrained("tx_stop"));
		assertThat(effects()).as("none twice, which the primary key would refuse").containsExactly("1", "2", "3", "4");
		assertThat(this.fixture.pendingRetries("tx_stop")).isZero();
	}

	@Test
	void slotsAreHandledInTransactionsAtTheSameTime() {
		this.fixture.properties.setMode(ListenerMode.PARTITIONED);
		this.fixture.properties.setPartitions(4);
		this.fixture.properties.setConcurrency(2);
		var container = container("tx_slots", new JdbcTransactionManager(this.pool),
				(message) -> insert(message.id(), message.payload()));
		container.start();
		for (int i = 0; i < 40; i++) {
			this.fixture.client.send("tx_slots", "type", "" + i, new EventExtras("key " + i, null, null, null));
		}
		this.fixture.tick("tx_slots");
		await().until(() -> effects().size() == 40);
		await().until(() -> this.fixture.isDrained("tx_slots"));
	}

	@Test
	void whatDoesNotGoTogetherIsRefused() {
		JdbcTransactionManager manager = new JdbcTransactionManager(this.pool);
		this.fixture.properties.setConcurrency(2);
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> container("refused", manager, (message) -> {
			}))
			.withMessageContaining(
					"is transactional, which does not go together with concurrency 2 in mode 'exclusive'")
			.withMessageContaining("Set concurrency to 1, or choose mode 'partitioned'");
		this.fixture.properties.setConcurrency(1);
		this.fixture.properties.setMode(ListenerMode.COOPERATIVE);
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> container("refused", manager, (message) -> {
			}))
			.withMessageContaining("mode 'cooperative'");
		this.fixture.properties.setMode(ListenerMode.EXCLUSIVE);
		assertThatExceptionOfType(InvalidListenerException.class).isThrownBy(
				() -> container("refused", new JdbcTransactionManager(this.database.dataSource()), (message) -> {
				}))
			.withMessageContaining("are not those of the data source with PgQue's queues");
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> this.fixture.container("refused", (message) -> {
			}))
			.withMessageContaining("there is no transaction manager");
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> this.fixture.batchContainer("refused", (batch) -> {
			}))
			.withMessageContaining("a handler of several messages");
	}

	private DefaultPgqueMessageListenerContainer container(String queue, PlatformTransactionManager manager,
			PgqueMessageListener listener) {
		return this.fixture.container(queue, ListenerFixture.routes(listener),
				(container) -> container.setTransactionManager(manager));
	}

	private void insert(long id, String payload) {
		this.jdbc.update("insert into effect values (?, ?)", id, payload);
	}

	private List<String> effects() {
		return this.database.values(String.class, "select payload from effect order by id");
	}

	private EntityManagerFactory entities() {
		LocalContainerEntityManagerFactoryBean factory = new LocalContainerEntityManagerFactoryBean();
		factory.setDataSource(this.pool);
		factory.setManagedTypes(PersistenceManagedTypes.of(Effect.class.getName()));
		factory.setJpaVendorAdapter(new HibernateJpaVendorAdapter());
		factory.afterPropertiesSet();
		EntityManagerFactory entities = factory.getObject();
		assertThat(entities).isNotNull();
		return entities;
	}

	@Entity
	@Table(name = "effect")
	static class Effect {

		@Id
		long id;

		String payload;

		Effect() {
		}

		Effect(long id, String payload) {
			this.id = id;
			this.payload = payload;
		}

	}

}
