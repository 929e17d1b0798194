package io.pgque.core;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.ReadOnlyTransactionException;
import io.pgque.TransactionRequiredException;
import io.pgque.client.EventRow;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.core.Ordered;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for what {@link PgqueTemplate} does in transactions: of managers that have it
 * follow them, and of others.
 */
@PgqueDatabase
@ParameterizedClass(name = "followed: {0}")
@ValueSource(booleans = { false, true })
class SendTransactionsTests {

	private static int number;

	private final boolean followed;

	private final TestDatabase database;

	private final String queue = "queue" + (++number);

	private final List<Set<String>> commits = new ArrayList<>();

	private final HikariDataSource clientPool;

	private final PgqueClient client;

	private HikariDataSource pool;

	private PgqueTemplate template;

	private JdbcTransactionManager transactionManager;

	SendTransactionsTests(boolean followed, TestDatabase database) {
		this.followed = followed;
		this.database = database;
		this.clientPool = database.pool(2);
		this.client = new PgqueClient(this.clientPool);
	}

	@BeforeEach
	void setUp() {
		use(this.database.pool(2));
		this.client.createQueue(this.queue);
		this.client.subscribe(this.queue, "c");
	}

	@AfterEach
	void nothingIsLeftOnTheThread() {
		assertThat(TransactionSynchronizationManager.getResourceMap()).isEmpty();
		assertThat(this.pool.getHikariPoolMXBean().getActiveConnections()).isZero();
		this.pool.close();
		this.clientPool.close();
	}

	private void use(HikariDataSource dataSource) {
		this.pool = dataSource;
		this.template = template(dataSource);
		this.transactionManager = manager(dataSource, this.template);
	}

	private PgqueTemplate template(DataSource dataSource) {
		PgqueTemplate created = new PgqueTemplate(dataSource, new Jackson2MessageConverter());
		created.setCommitListener(this.commits::add);
		return created;
	}

	private JdbcTransactionManager manager(DataSource dataSource, PgqueTemplate template) {
		JdbcTransactionManager created = new JdbcTransactionManager(dataSource);
		if (this.followed) {
			created.addListener(template.getTransactionExecutionListener());
		}
		return created;
	}

	private TransactionTemplate transaction() {
		return new TransactionTemplate(this.transactionManager);
	}

	private List<String> receivedPayloads() {
		this.client.tickAll();
		List<EventRow> rows = this.client.receiveBatch(this.queue, "c", 1000, 1_000_000).rows();
		if (!rows.isEmpty()) {
			this.client.settle(rows.get(0).batchId(), null, List.of());
		}
		return rows.stream().map(EventRow::data).toList();
	}

	@Test
	void joinsTransactionAndTellsOfItsCommitOnce() {
		this.client.createQueue(this.queue + "b");
		transaction().executeWithoutResult((status) -> {
			this.template.send(this.queue, "a");
			this.template.sendBatch(this.queue, List.of("b", "c"));
			this.template.send(this.queue + "b", "d");
			assertThat(this.commits).isEmpty();
			assertThat(receivedPayloads()).isEmpty();
		});
		assertThat(this.commits).containsExactly(Set.of(this.queue, this.queue + "b"));
		assertThat(receivedPayloads()).containsExactly("a", "b", "c");
	}

	@Test
	void rolledBackIsNeverDelivered() {
		transaction().executeWithoutResult((status) -> {
			this.template.send(this.queue, "a");
			status.setRollbackOnly();
		});
		assertThat(this.commits).isEmpty();
		assertThat(receivedPayloads()).isEmpty();
	}

	@Test
	void nestedTransactionsCountWhenTheyCommit() {
		TransactionTemplate nested = transaction();
		nested.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
		transaction().executeWithoutResult((status) -> {
			this.template.send(this.queue, "outer");
			nested.executeWithoutResult((inner) -> this.template.send(this.queue, "kept"));
			nested.executeWithoutResult((inner) -> {
				this.template.send(this.queue, "dropped");
				inner.setRollbackOnly();
			});
		});
		assertThat(this.commits).containsExactly(Set.of(this.queue));
		assertThat(receivedPayloads()).containsExactly("outer", "kept");
	}

	@Test
	void suspendedTransactionKeepsItsOwnSends() {
		this.client.createQueue(this.queue + "b");
		TransactionTemplate apart = transaction();
		apart.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		transaction().executeWithoutResult((status) -> {
			this.template.send(this.queue, "outer");
			apart.executeWithoutResult((inner) -> this.template.send(this.queue + "b", "inner"));
			assertThat(this.commits).containsExactly(Set.of(this.queue + "b"));
			status.setRollbackOnly();
		});
		assertThat(this.commits).hasSize(1);
		assertThat(receivedPayloads()).isEmpty();
	}

	@Test
	void commitsByItselfWithoutTransaction() {
		this.template.send(this.queue, "a");
		assertThat(this.commits).containsExactly(Set.of(this.queue));
		assertThat(receivedPayloads()).containsExactly("a");
	}

	@Test
	void commitsByItselfInScopeWithoutTransaction() {
		TransactionTemplate scope = transaction();
		scope.setPropagationBehavior(TransactionDefinition.PROPAGATION_SUPPORTS);
		scope.executeWithoutResult((status) -> {
			this.template.send(this.queue, "a");
			assertThat(receivedPayloads()).containsExactly("a");
		});
	}

	@Test
	void transactionCanBeRequired() {
		this.template.setTransactionRequired(true);
		assertThatExceptionOfType(TransactionRequiredException.class)
			.isThrownBy(() -> this.template.send(this.queue, "a"))
			.withMessageContaining("'" + this.queue + "'")
			.withMessageContaining("@Transactional");
		TransactionTemplate scope = transaction();
		scope.setPropagationBehavior(TransactionDefinition.PROPAGATION_SUPPORTS);
		assertThatExceptionOfType(TransactionRequiredException.class)
			.isThrownBy(() -> scope.executeWithoutResult((status) -> this.template.send(this.queue, "a")));
		assertThat(receivedPayloads()).isEmpty();
		transaction().executeWithoutResult((status) -> this.template.send(this.queue, "b"));
		assertThat(receivedPayloads()).containsExactly("b");
	}

	@Test
	void transactionOfAnotherDataSourceIsNoTransaction() {
		try (HikariDataSource other = this.database.pool(1)) {
			TransactionTemplate elsewhere = new TransactionTemplate(manager(other, this.template));
			elsewhere.executeWithoutResult((status) -> {
				this.template.send(this.queue, "a");
				status.setRollbackOnly();
			});
			assertThat(receivedPayloads()).containsExactly("a");
			this.template.setTransactionRequired(true);
			assertThatExceptionOfType(TransactionRequiredException.class)
				.isThrownBy(() -> elsewhere.executeWithoutResult((status) -> this.template.send(this.queue, "a")));
		}
	}

	@Test
	void transactionOfAnotherDataSourceLosesNothingWithoutAutoCommit() {
		HikariConfig config = new HikariConfig();
		config.setDataSource(this.database.dataSource());
		config.setAutoCommit(false);
		config.setMaximumPoolSize(2);
		try (HikariDataSource own = new HikariDataSource(config); HikariDataSource other = this.database.pool(1)) {
			PgqueTemplate template = new PgqueTemplate(own, new Jackson2MessageConverter());
			TransactionTemplate elsewhere = new TransactionTemplate(manager(other, template));
			TransactionTemplate inner = new TransactionTemplate(manager(own, template));
			inner.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
			elsewhere.executeWithoutResult((outer) -> {
				template.send(this.queue, "a");
				template.send(this.queue, "b");
				inner.executeWithoutResult((status) -> {
					template.send(this.queue, "rolled back");
					status.setRollbackOnly();
				});
				template.send(this.queue, "c");
				outer.setRollbackOnly();
			});
			assertThat(receivedPayloads()).containsExactly("a", "b", "c");
			template.setTransactionRequired(true);
			assertThatExceptionOfType(TransactionRequiredException.class)
				.isThrownBy(() -> elsewhere.executeWithoutResult((status) -> template.send(this.queue, "d")));
		}
	}

	@Test
	void readOnlyTransactionIsRefusedAndStaysUsable() {
		TransactionTemplate readOnly = transaction();
		readOnly.setReadOnly(true);
		Integer answer = readOnly.execute((status) -> {
			assertThatExceptionOfType(ReadOnlyTransactionException.class)
				.isThrownBy(() -> this.template.send(this.queue, "a"))
				.withMessageContaining("'" + this.queue + "'")
				.withMessageContaining("read-only")
				.satisfies((ex) -> assertThat(ex.getSqlState()).isNull());
			return new JdbcTemplate(this.pool).queryForObject("select 42", Integer.class);
		});
		assertThat(answer).isEqualTo(42);
	}

	@Test
	void readOnlyServerSideIsTold() {
		transaction().executeWithoutResult((status) -> {
			new JdbcTemplate(this.pool).execute("set transaction read only");
			assertThatExceptionOfType(ReadOnlyTransactionException.class)
				.isThrownBy(() -> this.template.send(this.queue, "a"))
				.satisfies((ex) -> assertThat(ex.getSqlState()).isEqualTo("25006"));
			status.setRollbackOnly();
		});
	}

	@Test
	void sendInCommitCallbacksIsCommitted() {
		sendInCallbacks();
		assertThat(receivedPayloads()).containsExactly("first", "before commit", "before completion", "after commit",
				"after completion");
		assertThat(this.commits).last().isEqualTo(Set.of(this.queue));
	}

	@Test
	void sendInCommitCallbacksIsCommittedWithAutoCommitOff() {
		useWithoutAutoCommit();
		sendInCallbacks();
		assertThat(receivedPayloads()).containsExactly("first", "before commit", "before completion", "after commit",
				"after completion");
	}

	private void sendInCallbacks() {
		transaction().executeWithoutResult((status) -> {
			this.template.send(this.queue, "first");
			register(List.of("before commit", "before completion", "after commit", "after completion"));
		});
	}

	@Test
	void commitIsToldBeforeOtherCallbacksTakeTheirTime() {
		List<Integer> told = new ArrayList<>();
		transaction().executeWithoutResult((status) -> {
			TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {

				@Override
				public void afterCommit() {
					told.add(SendTransactionsTests.this.commits.size());
				}

			});
			this.template.send(this.queue, "a");
		});
		assertThat(told).containsExactly(1);
		assertThat(this.commits).hasSize(1);
	}

	@Test
	void firstSendAfterCommitIsCommitted() {
		for (boolean autoCommit : new boolean[] { true, false }) {
			if (!autoCommit) {
				useWithoutAutoCommit();
			}
			for (String phase : List.of("before commit", "before completion", "after commit", "after completion")) {
				this.commits.clear();
				transaction().executeWithoutResult((status) -> register(List.of(phase)));
				assertThat(receivedPayloads()).as("auto-commit %s", autoCommit).containsExactly(phase);
				assertThat(this.commits).as(phase).containsExactly(Set.of(this.queue));
			}
		}
	}

	private void register(List<String> phases) {
		LastSteps.register((phase) -> {
			if (phases.contains(phase)) {
				this.template.send(this.queue, phase);
			}
		});
	}

	/**
	 * In callbacks after a transaction Spring begins others that don't suspend it.
	 */
	@Test
	void transactionInACallbackAfterARollbackSendsNothingOfThatOne() {
		TransactionTemplate apart = transaction();
		apart.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		List<Runnable> works = List.of(() -> {
		}, () -> this.template.send(this.queue, "apart"), () -> this.template.sendLater(this.queue, "apart"));
		for (int order : new int[] { Ordered.HIGHEST_PRECEDENCE, 0, Ordered.LOWEST_PRECEDENCE }) {
			for (Runnable work : works) {
				transaction().executeWithoutResult((status) -> {
					afterCompletion(order, () -> apart.executeWithoutResult((inner) -> work.run()));
					this.template.sendLater(this.queue, "rolled back");
					status.setRollbackOnly();
				});
				assertThat(receivedPayloads()).as("order %d", order).doesNotContain("rolled back");
				assertThat(this.commits).hasSize(work == works.get(0) ? 0 : 1);
				this.commits.clear();
			}
		}
	}

	@Test
	void transactionOfAnotherManagerInACallbackAfterARollbackSendsNothingOfThatOne() {
		try (HikariDataSource other = this.database.pool(1)) {
			TransactionTemplate elsewhere = new TransactionTemplate(manager(other, this.template));
			transaction().executeWithoutResult((status) -> {
				afterCompletion(0, () -> elsewhere.executeWithoutResult((inner) -> {
				}));
				this.template.sendLater(this.queue, "rolled back");
				status.setRollbackOnly();
			});
			assertThat(receivedPayloads()).isEmpty();
		}
	}

	@Test
	void sendAfterACommitIsCommittedWithAutoCommitOffWhateverComesAfterIt() {
		useWithoutAutoCommit(2);
		TransactionTemplate apart = transaction();
		apart.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		transaction().executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "first");
			register(List.of("after commit"));
			afterCompletion(0, () -> apart.executeWithoutResult((inner) -> {
			}));
		});
		assertThat(receivedPayloads()).containsExactly("first", "after commit");
	}

	/**
	 * Such as entities that publish while they are written, when their entity manager's
	 * transaction is another one.
	 */
	@Test
	void sendWhileATransactionInBetweenCommitsLeavesTheOuterOneOpen() {
		try (HikariDataSource other = this.database.pool(1)) {
			JdbcTransactionManager manager = new JdbcTransactionManager(other) {

				@Override
				protected void doCommit(DefaultTransactionStatus status) {
					SendTransactionsTests.this.template.sendLater(SendTransactionsTests.this.queue, "inner");
					super.doCommit(status);
				}

			};
			if (this.followed) {
				manager.addListener(this.template.getTransactionExecutionListener());
			}
			TransactionTemplate elsewhere = new TransactionTemplate(manager);
			for (boolean commits : new boolean[] { false, true }) {
				transaction().executeWithoutResult((status) -> {
					this.template.send(this.queue, "outer");
					elsewhere.executeWithoutResult((inner) -> {
					});
					if (!commits) {
						status.setRollbackOnly();
					}
				});
				assertThat(receivedPayloads()).isEqualTo(commits ? List.of("outer", "inner") : List.of());
			}
		}
	}

	private static void afterCompletion(int order, Runnable work) {
		TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {

			@Override
			public int getOrder() {
				return order;
			}

			@Override
			public void afterCompletion(int status) {
				work.run();
			}

		});
	}

	@Test
	void sendsWithAutoCommitOff() {
		useWithoutAutoCommit();
		this.template.send(this.queue, "alone");
		TransactionTemplate scope = transaction();
		scope.setPropagationBehavior(TransactionDefinition.PROPAGATION_SUPPORTS);
		scope.executeWithoutResult((status) -> this.template.send(this.queue, "scope"));
		transaction().executeWithoutResult((status) -> this.template.send(this.queue, "transaction"));
		transaction().executeWithoutResult((status) -> {
			this.template.send(this.queue, "rolled back");
			status.setRollbackOnly();
		});
		assertThat(receivedPayloads()).containsExactly("alone", "scope", "transaction");
		assertThat(this.commits).hasSize(3);
	}

	private void useWithoutAutoCommit() {
		useWithoutAutoCommit(1);
	}

	private void useWithoutAutoCommit(int connections) {
		this.pool.close();
		HikariConfig config = new HikariConfig();
		config.setDataSource(this.database.dataSource());
		config.setMaximumPoolSize(connections);
		config.setAutoCommit(false);
		use(new HikariDataSource(config));
	}

	@Test
	void joinsTransactionWithoutSynchronization() {
		this.transactionManager.setTransactionSynchronization(AbstractPlatformTransactionManager.SYNCHRONIZATION_NEVER);
		transaction().executeWithoutResult((status) -> {
			this.template.send(this.queue, "rolled back");
			status.setRollbackOnly();
		});
		transaction().executeWithoutResult((status) -> this.template.send(this.queue, "a"));
		assertThat(receivedPayloads()).containsExactly("a");
	}

	@Test
	void worksThroughDataSourceProxies() {
		for (DataSource proxy : List.of(new LazyConnectionDataSourceProxy(this.pool),
				new TransactionAwareDataSourceProxy(this.pool))) {
			PgqueTemplate proxied = template(proxy);
			TransactionTemplate transaction = new TransactionTemplate(manager(proxy, proxied));
			proxied.send(this.queue, "alone");
			transaction.executeWithoutResult((status) -> proxied.send(this.queue, "transaction"));
			transaction.executeWithoutResult((status) -> {
				proxied.send(this.queue, "rolled back");
				status.setRollbackOnly();
			});
			transaction.setReadOnly(true);
			assertThatExceptionOfType(ReadOnlyTransactionException.class)
				.isThrownBy(() -> transaction.executeWithoutResult((status) -> proxied.send(this.queue, "a")));
			assertThat(receivedPayloads()).containsExactly("alone", "transaction");
		}
		assertThat(this.commits).hasSize(4);
	}

}
