package io.pgque.core;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.EventRow;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.CannotCreateTransactionException;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link TransactionFollower}: sends while transactions of two managers are on
 * one thread belong to the one whose connection they use.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class TransactionFollowerTests {

	private static int number;

	private final String queue = "queue" + (++number);

	private final HikariDataSource pool;

	private final HikariDataSource other;

	private final HikariDataSource clientPool;

	private final PgqueClient client;

	private final PgqueTemplate template;

	private final JdbcTransactionManager manager;

	private final TransactionTemplate ours;

	private final TransactionTemplate theirs;

	private final List<Set<String>> commits = new ArrayList<>();

	TransactionFollowerTests(TestDatabase database) {
		HikariConfig config = new HikariConfig();
		config.setDataSource(database.dataSource());
		config.setMaximumPoolSize(2);
		// So that nothing is committed by chance when a connection is given back.
		config.setAutoCommit(false);
		this.pool = new HikariDataSource(config);
		this.other = database.pool(2);
		this.clientPool = database.pool(1);
		this.client = new PgqueClient(this.clientPool);
		this.template = new PgqueTemplate(this.pool, new Jackson2MessageConverter());
		this.template.setCommitListener(this.commits::add);
		this.manager = manager(this.pool);
		this.ours = new TransactionTemplate(this.manager);
		this.theirs = new TransactionTemplate(manager(this.other));
	}

	private JdbcTransactionManager manager(HikariDataSource dataSource) {
		JdbcTransactionManager created = new JdbcTransactionManager(dataSource);
		created.addListener(this.template.getTransactionExecutionListener());
		return created;
	}

	@BeforeEach
	void createQueue() {
		this.client.createQueue(this.queue);
		this.client.subscribe(this.queue, "c");
	}

	@AfterEach
	void nothingIsLeftOnTheThread() {
		assertThat(TransactionSynchronizationManager.getResourceMap()).isEmpty();
		assertThat(this.pool.getHikariPoolMXBean().getActiveConnections()).isZero();
		assertThat(this.other.getHikariPoolMXBean().getActiveConnections()).isZero();
		this.pool.close();
		this.other.close();
		this.clientPool.close();
	}

	private List<String> received() {
		this.client.tickAll();
		List<EventRow> rows = this.client.receiveBatch(this.queue, "c", 1000, 1_000_000).rows();
		if (!rows.isEmpty()) {
			this.client.settle(rows.get(0).batchId(), null, List.of());
		}
		return rows.stream().map(EventRow::data).toList();
	}

	@Test
	void commitOfATransactionInBetweenIsNotToldAndLeavesTheOuterOneOpen() {
		for (boolean commits : new boolean[] { false, true }) {
			this.ours.executeWithoutResult((status) -> {
				this.template.sendLater(this.queue, "outer");
				this.theirs.executeWithoutResult((inner) -> {
					this.template.send(this.queue, "sent");
					this.template.sendLater(this.queue, "collected");
					LastSteps.register((phase) -> this.template.sendLater(this.queue, phase));
				});
				this.template.sendLater(this.queue, "last");
				assertThat(this.commits).isEmpty();
				if (!commits) {
					status.setRollbackOnly();
				}
			});
			assertThat(this.commits).isEqualTo(commits ? List.of(Set.of(this.queue)) : List.of());
			assertThat(received()).isEqualTo(commits ? List.of("outer", "sent", "collected", "before commit",
					"before completion", "after commit", "after completion", "last") : List.of());
		}
	}

	/**
	 * What nobody else commits any more is committed at once.
	 */
	@Test
	void sendInATransactionThatBeginsAfterTheCommitIsCommitted() {
		for (TransactionTemplate transaction : List.of(this.ours, this.theirs)) {
			this.ours.executeWithoutResult((status) -> {
				this.template.sendLater(this.queue, "outer");
				LastSteps.register((phase) -> {
					if (phase.startsWith("after")) {
						transaction.executeWithoutResult((inner) -> this.template.sendLater(this.queue, phase));
					}
				});
			});
			assertThat(received()).containsExactly("outer", "after commit", "after completion");
		}
	}

	/**
	 * As listeners of phase AFTER_COMMIT do, one after the other: Spring resumes the
	 * connection of the first transaction behind the second one, and nothing else of it.
	 */
	@Test
	void sendBehindATransactionThatBeganAfterTheCommitIsCommitted() {
		TransactionTemplate apart = new TransactionTemplate(this.manager);
		apart.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		for (Runnable send : List.<Runnable>of(() -> this.template.send(this.queue, "late"),
				() -> this.template.sendLater(this.queue, "late"),
				() -> this.ours.executeWithoutResult((inner) -> this.template.send(this.queue, "late")),
				() -> this.ours.executeWithoutResult((inner) -> this.template.sendLater(this.queue, "late")))) {
			this.commits.clear();
			this.ours.executeWithoutResult((status) -> TransactionSynchronizationManager
				.registerSynchronization(new TransactionSynchronization() {

					@Override
					public void afterCompletion(int status) {
						apart.executeWithoutResult((inner) -> {
						});
						send.run();
					}

				}));
			assertThat(received()).containsExactly("late");
			assertThat(this.commits).containsExactly(Set.of(this.queue));
		}
	}

	@Test
	void savepointsCountWhileATransactionOfAnotherManagerIsInBetween() {
		TransactionTemplate nested = new TransactionTemplate(this.manager);
		nested.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
		this.ours.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "outer");
			this.theirs.executeWithoutResult((inner) -> {
				nested.executeWithoutResult((innermost) -> {
					this.template.send(this.queue, "written");
					this.template.sendLater(this.queue, "collected");
					innermost.setRollbackOnly();
				});
				nested.executeWithoutResult((innermost) -> this.template.sendLater(this.queue, "kept"));
			});
		});
		assertThat(received()).containsExactly("outer", "kept");
	}

	@Test
	void transactionWithoutSynchronizationIsNotFollowed() {
		this.manager.setTransactionSynchronization(AbstractPlatformTransactionManager.SYNCHRONIZATION_NEVER);
		this.ours.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "rolled back");
			status.setRollbackOnly();
		});
		this.ours.executeWithoutResult((status) -> this.template.sendLater(this.queue, "a"));
		assertThat(received()).containsExactly("a");
	}

	@Test
	void nothingIsLostWhenSomebodyTakesTheListenersAway(CapturedOutput output) {
		this.ours.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "a");
			this.manager.setTransactionExecutionListeners(List.of());
		});
		assertThat(output).contains("What was sent to [" + this.queue + "] was written after the commit");
		assertThat(received()).containsExactly("a");
		assertThat(this.commits).contains(Set.of(this.queue));
	}

	/**
	 * Spring tells nobody of the end of a transaction in which a callback fails like
	 * that.
	 */
	@Test
	void goesOnAfterATransactionWhoseEndIsNotTold() {
		TransactionTemplate apart = new TransactionTemplate(this.manager);
		apart.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		for (int i = 0; i < 3; i++) {
			assertThatExceptionOfType(CannotCreateTransactionException.class)
				.isThrownBy(() -> this.ours.executeWithoutResult((status) -> {
					this.template.sendLater(this.queue, "rolled back");
					TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {

						@Override
						public void beforeCommit(boolean readOnly) {
							throw new CannotCreateTransactionException("no connection");
						}

					});
				}));
			this.ours.executeWithoutResult((status) -> {
				new JdbcTemplate(this.pool).queryForObject("select 1", Integer.class);
				this.template.sendLater(this.queue, "outer");
				apart.executeWithoutResult((inner) -> this.template.sendLater(this.queue, "apart"));
			});
			assertThat(received()).containsExactly("apart", "outer");
		}
	}

}
