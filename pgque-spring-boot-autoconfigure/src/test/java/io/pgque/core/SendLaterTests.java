package io.pgque.core;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.InvalidMessageException;
import io.pgque.InvalidNameException;
import io.pgque.QueueNotFoundException;
import io.pgque.ReadOnlyTransactionException;
import io.pgque.TransactionRequiredException;
import io.pgque.client.EventRow;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.StatementCounter;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for what {@link PgqueTemplate} collects and writes before the commit.
 */
@PgqueDatabase
@ParameterizedClass(name = "followed: {0}")
@ValueSource(booleans = { false, true })
class SendLaterTests {

	private static int number;

	private final String queue = "queue" + (++number);

	private final boolean followed;

	private final TestDatabase database;

	private final HikariDataSource pool;

	private final StatementCounter dataSource;

	private final PgqueClient client;

	private final PgqueTemplate template;

	private final List<Set<String>> commits = new ArrayList<>();

	private final TransactionTemplate transaction;

	private final TransactionTemplate nested;

	SendLaterTests(boolean followed, TestDatabase database) {
		this.followed = followed;
		this.database = database;
		this.pool = database.pool(3);
		this.dataSource = new StatementCounter(this.pool);
		this.client = new PgqueClient(this.pool);
		this.template = new PgqueTemplate(this.dataSource, new Jackson2MessageConverter());
		this.template.setCommitListener(this.commits::add);
		JdbcTransactionManager manager = new JdbcTransactionManager(this.dataSource);
		if (followed) {
			manager.addListener(this.template.getTransactionExecutionListener());
		}
		this.transaction = new TransactionTemplate(manager);
		this.nested = template(TransactionDefinition.PROPAGATION_NESTED);
	}

	private TransactionTemplate template(int propagation) {
		TransactionTemplate created = new TransactionTemplate(this.transaction.getTransactionManager());
		created.setPropagationBehavior(propagation);
		return created;
	}

	@BeforeEach
	void createQueue() {
		createQueue(this.queue);
	}

	private void createQueue(String name) {
		this.client.createQueue(name);
		this.client.subscribe(name, "c");
	}

	@AfterEach
	void nothingIsLeftOnTheThread() {
		assertThat(TransactionSynchronizationManager.getResourceMap()).isEmpty();
		assertThat(this.pool.getHikariPoolMXBean().getActiveConnections()).isZero();
		this.pool.close();
	}

	private List<String> received() {
		return received(this.queue);
	}

	private List<String> received(String name) {
		this.client.tickAll();
		List<EventRow> rows = this.client.receiveBatch(name, "c", 5000, 50_000_000).rows();
		if (!rows.isEmpty()) {
			this.client.settle(rows.get(0).batchId(), null, List.of());
		}
		return rows.stream().map(EventRow::data).toList();
	}

	@Test
	void thousandPublishesAreOneStatementForEachQueue() {
		createQueue("events");
		createQueue("other events");
		this.transaction.executeWithoutResult((status) -> {
			for (int i = 0; i < 1000; i++) {
				this.template.publish(new Happened(i));
				this.template.publish((i % 2 == 0) ? new OtherHappened(i) : new YetOther(i));
			}
			assertThat(this.dataSource.statements()).isEmpty();
		});
		assertThat(this.dataSource.statements()).hasSize(2);
		assertThat(this.commits).containsExactly(Set.of("events", "other events"));
		assertThat(received("events"))
			.isEqualTo(IntStream.range(0, 1000).mapToObj((i) -> "{\"n\":" + i + "}").toList());
		assertThat(received("other events"))
			.isEqualTo(IntStream.range(0, 1000).mapToObj((i) -> "{\"n\":" + i + "}").toList());
	}

	@Test
	void typesKeysAndHeadersTravelTogether() {
		this.transaction.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "a");
			this.template.sendLater(this.queue, "t", Map.of("b", 1));
			this.template.sendLater(this.queue, (spec) -> spec.payload("c").key("k").header("h", "1").extra2("e"));
		});
		assertThat(this.dataSource.statements()).hasSize(1);
		this.client.tickAll();
		List<EventRow> rows = this.client.receiveBatch(this.queue, "c", 10, 1000).rows();
		assertThat(rows).extracting(EventRow::type).containsExactly("default", "t", "default");
		assertThat(rows).extracting(EventRow::data).containsExactly("a", "{\"b\":1}", "c");
		assertThat(rows).extracting(EventRow::extra1).containsExactly(null, null, "k");
		assertThat(rows).extracting(EventRow::extra2).containsExactly(null, null, "e");
		assertThat(rows).extracting(EventRow::extra4).containsExactly(null, null, "{\"h\":\"1\"}");
	}

	@Test
	void sendThatReturnsAnIdKeepsTheOrderOfItsQueue() {
		createQueue(this.queue + "b");
		this.transaction.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "1");
			this.template.sendLater(this.queue + "b", "other");
			this.template.sendLater(this.queue, "2");
			this.template.send(this.queue, "3");
			assertThat(this.dataSource.statements()).hasSize(2);
			this.template.sendLater(this.queue, "4");
			this.template.sendBatch(this.queue, List.of("5", "6"));
			this.template.sendLater(this.queue, (spec) -> spec.payload("7").idempotencyKey("seven"));
			this.template.sendLater(this.queue, "8");
		});
		assertThat(received()).containsExactly("1", "2", "3", "4", "5", "6", "7", "8");
		assertThat(received(this.queue + "b")).containsExactly("other");
	}

	@Test
	void rollbackDropsWhatWasCollected() {
		this.transaction.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "a");
			status.setRollbackOnly();
		});
		assertThat(this.dataSource.statements()).isEmpty();
		assertThat(this.commits).isEmpty();
		this.transaction.executeWithoutResult((status) -> this.template.sendLater(this.queue, "b"));
		assertThat(received()).containsExactly("b");
	}

	@Test
	void nestedTransactionsCountWhenTheyCommit() {
		this.transaction.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "outer");
			this.nested.executeWithoutResult((inner) -> this.template.sendLater(this.queue, "kept"));
			this.nested.executeWithoutResult((inner) -> {
				this.template.sendLater(this.queue, "dropped");
				this.nested.executeWithoutResult((innermost) -> this.template.sendLater(this.queue, "dropped too"));
				inner.setRollbackOnly();
			});
			this.template.sendLater(this.queue, "last");
		});
		assertThat(received()).containsExactly("outer", "kept", "last");
	}

	@Test
	void firstMessageMayBeInANestedTransactionThatIsRolledBack() {
		this.transaction.executeWithoutResult((status) -> {
			this.nested.executeWithoutResult((inner) -> {
				this.template.sendLater(this.queue, "dropped");
				inner.setRollbackOnly();
			});
			this.template.sendLater(this.queue, "kept");
		});
		assertThat(received()).containsExactly("kept");
	}

	@Test
	void whatWasWrittenInANestedTransactionThatIsRolledBackIsWrittenAgain() {
		this.transaction.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "before");
			this.nested.executeWithoutResult((inner) -> {
				this.template.sendLater(this.queue, "dropped");
				this.template.send(this.queue, "dropped, with an id");
				inner.setRollbackOnly();
			});
			this.template.sendLater(this.queue, "after");
			Object savepoint = status.createSavepoint();
			this.template.send(this.queue, "dropped again");
			status.rollbackToSavepoint(savepoint);
			status.rollbackToSavepoint(savepoint);
		});
		assertThat(received()).containsExactly("before", "after");
	}

	/**
	 * Nobody tells of it, so what was collected is sent all the same: documented.
	 */
	@Test
	void savepointByHandDropsOnlyWhatWasWritten() {
		this.transaction.executeWithoutResult((status) -> {
			Connection connection = DataSourceUtils.getConnection(this.dataSource);
			try {
				Savepoint savepoint = connection.setSavepoint();
				this.template.send(this.queue, "written");
				this.template.sendLater(this.queue, "collected");
				connection.rollback(savepoint);
			}
			catch (SQLException ex) {
				throw new IllegalStateException(ex);
			}
			finally {
				DataSourceUtils.releaseConnection(connection, this.dataSource);
			}
		});
		assertThat(received()).containsExactly("collected");
	}

	@Test
	void suspendedTransactionKeepsWhatItCollected() {
		TransactionTemplate apart = template(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		TransactionTemplate without = template(TransactionDefinition.PROPAGATION_NOT_SUPPORTED);
		this.transaction.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "outer");
			apart.executeWithoutResult((inner) -> {
				this.template.sendLater(this.queue, "inner");
				this.template.sendLater(this.queue, "inner too");
			});
			assertThat(received()).containsExactly("inner", "inner too");
			without.executeWithoutResult((inner) -> this.template.sendLater(this.queue, "at once"));
			assertThat(received()).containsExactly("at once");
			apart.executeWithoutResult((inner) -> {
				this.template.sendLater(this.queue, "dropped");
				inner.setRollbackOnly();
			});
		});
		assertThat(received()).containsExactly("outer");
	}

	@Test
	void callbacksOfTheCommitMaySend() {
		List<String> phases = List.of("before commit", "before completion", "after commit", "after completion");
		this.transaction.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "first");
			sendInCallbacks(phases);
		});
		assertThat(received()).containsExactly("first", "before commit", "before completion", "after commit",
				"after completion");
		for (String phase : phases) {
			this.transaction.executeWithoutResult((status) -> sendInCallbacks(List.of(phase)));
			assertThat(received()).containsExactly(phase);
		}
	}

	/**
	 * A manager that says when all callbacks are through has those collected for, too.
	 */
	@Test
	void callbacksBeforeTheCommitAreCollectedForWhereTheManagerIsFollowed() {
		this.transaction.executeWithoutResult((status) -> {
			sendInCallbacks(List.of("before commit"));
			sendInCallbacks(List.of("before commit", "before completion"));
		});
		assertThat(this.dataSource.statements()).hasSize(this.followed ? 1 : 3);
		assertThat(received()).containsExactly("before commit", "before commit", "before completion");
		assertThat(this.commits).containsExactly(Set.of(this.queue));
	}

	@Test
	void transactionInACallbackOfAnotherCollectsItsOwn() {
		TransactionTemplate apart = template(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		this.transaction.executeWithoutResult((status) -> {
			TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {

				@Override
				public void beforeCommit(boolean readOnly) {
					apart.executeWithoutResult((inner) -> SendLaterTests.this.template
						.sendLater(SendLaterTests.this.queue, "apart, before the commit"));
				}

				@Override
				public void afterCommit() {
					apart.executeWithoutResult((inner) -> SendLaterTests.this.template
						.sendLater(SendLaterTests.this.queue, "apart, after the commit"));
				}

			});
			this.template.sendLater(this.queue, "outer");
		});
		assertThat(received()).containsExactlyInAnyOrder("apart, before the commit", "outer",
				"apart, after the commit");
		assertThat(this.commits).hasSize(3);
	}

	/**
	 * It has synchronizations of its own, and leaves this one's connection bound: what is
	 * sent belongs to that, as rows do, where it is known whose it is.
	 */
	@Test
	void transactionOfAnotherDataSourceInBetweenTakesNothingAlong() {
		try (HikariDataSource other = this.database.pool(1)) {
			JdbcTransactionManager manager = new JdbcTransactionManager(other);
			if (this.followed) {
				manager.addListener(this.template.getTransactionExecutionListener());
			}
			TransactionTemplate elsewhere = new TransactionTemplate(manager);
			for (boolean commits : new boolean[] { false, true }) {
				this.transaction.executeWithoutResult((status) -> {
					this.template.sendLater(this.queue, "outer");
					elsewhere.executeWithoutResult((inner) -> this.template.sendLater(this.queue, "inner"));
					elsewhere.executeWithoutResult((inner) -> {
						this.template.sendLater(this.queue, "dropped");
						inner.setRollbackOnly();
					});
					this.template.sendLater(this.queue, "last");
					if (!commits) {
						status.setRollbackOnly();
					}
				});
				List<String> sent = this.followed ? List.of("outer", "inner", "dropped", "last")
						: List.of("inner", "outer", "last");
				assertThat(received()).containsExactlyElementsOf(commits ? sent : List.of());
			}
		}
	}

	private void sendInCallbacks(List<String> phases) {
		LastSteps.register((phase) -> {
			if (phases.contains(phase)) {
				this.template.sendLater(this.queue, phase);
			}
		});
	}

	@Test
	void mistakesAreToldByTheCall() {
		this.transaction.executeWithoutResult((status) -> {
			assertThatExceptionOfType(InvalidNameException.class)
				.isThrownBy(() -> this.template.sendLater("x".repeat(58), "a"));
			assertThatExceptionOfType(InvalidMessageException.class)
				.isThrownBy(() -> this.template.sendLater(this.queue, "a\u0000"));
			assertThatExceptionOfType(InvalidMessageException.class)
				.isThrownBy(() -> this.template.publish(new Unstated()))
				.withMessageContaining("@PgqueEvent");
		});
		TransactionTemplate readOnly = template(TransactionDefinition.PROPAGATION_REQUIRED);
		readOnly.setReadOnly(true);
		readOnly.executeWithoutResult((status) -> assertThatExceptionOfType(ReadOnlyTransactionException.class)
			.isThrownBy(() -> this.template.sendLater(this.queue, "a")));
		this.template.setTransactionRequired(true);
		assertThatExceptionOfType(TransactionRequiredException.class)
			.isThrownBy(() -> this.template.sendLater(this.queue, "a"));
		assertThat(this.dataSource.statements()).isEmpty();
	}

	@Test
	void unknownQueueFailsTheCommit() {
		assertThatExceptionOfType(QueueNotFoundException.class)
			.isThrownBy(() -> this.transaction.executeWithoutResult((status) -> {
				this.template.sendLater(this.queue, "a");
				this.template.sendLater("nowhere", "b");
			}));
		assertThat(received()).isEmpty();
		assertThat(this.commits).isEmpty();
	}

	@Test
	void withoutTransactionItIsSentAtOnce() {
		this.template.sendLater(this.queue, "a");
		assertThat(this.commits).containsExactly(Set.of(this.queue));
		assertThat(received()).containsExactly("a");
	}

	@Test
	void memoryIsBounded() {
		String large = "x".repeat(3 * 1024 * 1024);
		this.transaction.executeWithoutResult((status) -> {
			for (int i = 0; i < 7; i++) {
				this.template.sendLater(this.queue, i + large);
			}
			assertThat(this.dataSource.statements()).hasSize(2);
		});
		assertThat(this.dataSource.statements()).hasSize(3);
		assertThat(received()).extracting((payload) -> payload.charAt(0))
			.containsExactly('0', '1', '2', '3', '4', '5', '6');
	}

	@PgqueEvent(queue = "events")
	record Happened(int n) {
	}

	@PgqueEvent(queue = "other events", type = "other")
	record OtherHappened(int n) {
	}

	@PgqueEvent(queue = "other events")
	record YetOther(int n) {
	}

	record Unstated() {
	}

}
