package io.pgque.client;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.MissingPrivilegeException;
import io.pgque.PgqueException;
import io.pgque.PgqueSchemaException;
import io.pgque.QueueNotFoundException;
import io.pgque.SubscriptionNotFoundException;
import io.pgque.UnsupportedDatabaseException;
import io.pgque.client.TickResult.Outcome;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.tuple;
import static org.assertj.core.api.Assertions.within;

/**
 * Tests for {@link PgqueClient}.
 */
@PgqueDatabase
class PgqueClientTests {

	private static int number;

	private final TestDatabase database;

	private final PgqueClient client;

	private final String queue = "queue-" + (++number);

	PgqueClientTests(TestDatabase database) {
		this.database = database;
		this.client = new PgqueClient(database.dataSource());
	}

	@BeforeEach
	void createQueue() {
		this.client.createQueue(this.queue);
	}

	@Test
	void createsQueueOnce() {
		assertThat(this.client.queueExists("new")).isFalse();
		assertThat(this.client.createQueue("new")).isTrue();
		assertThat(this.client.createQueue("new")).isFalse();
		assertThat(this.client.queueExists("new")).isTrue();
		this.client.dropQueue("new", false);
		assertThat(this.client.queueExists("new")).isFalse();
	}

	@Test
	void ticksWhateverTheDefaultIsolation() {
		HikariConfig config = new HikariConfig();
		config.setDataSource(this.database.dataSource());
		config.setMaximumPoolSize(1);
		for (boolean autoCommit : new boolean[] { true, false }) {
			config.setAutoCommit(autoCommit);
			config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ");
			try (HikariDataSource pool = new HikariDataSource(config)) {
				PgqueClient client = new PgqueClient(pool);
				client.send(this.queue, "t", "x", EventExtras.NONE);
				assertThat(client.tickAll()).extracting(TickResult::queue).contains(this.queue);
				client.send(this.queue, "t", "y", EventExtras.NONE);
				assertThat(client.tick(List.of(this.queue))).hasSize(1);
				client.maintain();
			}
		}
	}

	@Test
	void subscribesOnce() {
		assertThat(this.client.subscribe(this.queue, "c")).isTrue();
		assertThat(this.client.subscribe(this.queue, "c")).isFalse();
		assertThat(this.client.unsubscribe(this.queue, "c")).isTrue();
		assertThat(this.client.unsubscribe(this.queue, "c")).isFalse();
	}

	@Test
	void carriesEveryPartOfAnEvent() {
		this.client.subscribe(this.queue, "c");
		long id = this.client.send(this.queue, "t", "d\u00e4ta \ud83d\ude00", new EventExtras("1", "2", "3", "4"));
		long empty = this.client.send(this.queue, null, null, EventExtras.NONE);
		List<TickResult> ticks = this.client.tick(List.of(this.queue, "unknown"));
		assertThat(ticks).extracting(TickResult::queue, TickResult::outcome)
			.containsExactlyInAnyOrder(tuple(this.queue, Outcome.TICKED), tuple("unknown", Outcome.FAILED));
		assertThat(ticks).filteredOn((tick) -> tick.outcome() == Outcome.TICKED)
			.extracting(TickResult::tickId)
			.doesNotContainNull();
		assertThat(this.client.tick(List.of(this.queue))).isEmpty();
		Page page = this.client.receiveBatch(this.queue, "c", 100, 1_000_000);
		assertThat(page.more()).isFalse();
		EventRow first = page.rows().get(0);
		assertThat(first).usingRecursiveComparison()
			.ignoringFields("createdAt")
			.isEqualTo(new EventRow(id, page.batchId(), "t", "d\u00e4ta \ud83d\ude00", null, OffsetDateTime.now(), "1",
					"2", "3", "4"));
		assertThat(first.createdAt()).isCloseTo(OffsetDateTime.now(), within(Duration.ofMinutes(1)));
		assertThat(page.rows().get(1)).usingRecursiveComparison()
			.ignoringFields("createdAt")
			.isEqualTo(new EventRow(empty, page.batchId(), null, null, null, OffsetDateTime.now(), null, null, null,
					null));
		assertThat(this.client.settle(page.batchId(), null, List.of()).settled()).isTrue();
		assertThat(this.client.settle(page.batchId(), null, List.of()))
			.isEqualTo(new SettleResult(false, 0, List.of()));
		assertThat(this.client.receiveBatch(this.queue, "c", 100, 1_000_000).isEmpty()).isTrue();
	}

	@Test
	void sendsBatchInOrder() {
		this.client.subscribe(this.queue, "c");
		List<Long> ids = this.client.sendBatch(this.queue, "t", Arrays.asList("a,\"b\"", null, "{}", "NULL"));
		List<Long> mixed = this.client.sendBatch(this.queue, List.of("x", "y"), Arrays.asList("1", null),
				List.of(EventExtras.NONE, new EventExtras("k", null, null, null)));
		assertThat(ids).hasSize(4).isSorted();
		assertThat(mixed).hasSize(2).isSorted();
		this.client.tickAll();
		List<EventRow> rows = this.client.receiveBatch(this.queue, "c", 100, 1_000_000).rows();
		assertThat(rows).extracting(EventRow::id)
			.startsWith(ids.toArray(Long[]::new))
			.endsWith(mixed.toArray(Long[]::new));
		assertThat(rows).extracting(EventRow::data).containsExactly("a,\"b\"", null, "{}", "NULL", "1", null);
		assertThat(rows).extracting(EventRow::type).containsExactly("t", "t", "t", "t", "x", "y");
	}

	@Test
	void readsPageByPage() {
		this.client.subscribe(this.queue, "c");
		List<Long> ids = this.client.sendBatch(this.queue, "t", List.of("a", "b", "c"));
		this.client.tickAll();
		Page first = this.client.receiveBatch(this.queue, "c", 2, 1_000_000);
		assertThat(first.rows()).extracting(EventRow::id).containsExactly(ids.get(0), ids.get(1));
		assertThat(first.more()).isTrue();
		Page second = this.client.batchPages(first.batchId(), 2, 1_000_000).next(ids.get(1));
		assertThat(second.rows()).extracting(EventRow::id).containsExactly(ids.get(2));
		assertThat(second.more()).isFalse();
		Page small = this.client.receiveBatch(this.queue, "c", 2, 1);
		assertThat(small.rows()).extracting(EventRow::data).containsExactly("a");
		assertThat(small.more()).isTrue();
	}

	@Test
	void settlesPrefixWithNacksAndDeadLetters() {
		this.client.subscribe(this.queue, "c");
		List<Long> ids = this.client.sendBatch(this.queue, "t", List.of("a", "b", "c"));
		this.client.tickAll();
		Page page = this.client.receiveBatch(this.queue, "c", 10, 1_000_000);
		SettleResult result = this.client.settle(page.batchId(), ids.get(1),
				List.of(Nack.retry(ids.get(0), Duration.ofMillis(400), "later\0"), Nack.dead(ids.get(1), "never")));
		assertThat(result).isEqualTo(new SettleResult(true, 1, List.of(ids.get(1))));
		Page rest = this.client.receiveBatch(this.queue, "c", 10, 1_000_000);
		assertThat(rest.batchId()).isNotEqualTo(page.batchId());
		assertThat(rest.rows()).extracting(EventRow::data).containsExactly("c");
		assertThat(rest.rows().get(0).retryCount()).isNull();
		Double delay = this.database.value(Double.class,
				"select extract(epoch from ev_retry_after - now()) from pgque.retry_queue where ev_id = ?"
						+ " and ev_queue = (select queue_id from pgque.queue where queue_name = ?)",
				ids.get(0), this.queue);
		assertThat(delay).isBetween(-5.0, 0.4);
		DeadLetterRow letter = this.client.deadLetters(this.queue, 10).get(0);
		assertThat(letter.consumer()).isEqualTo("c");
		assertThat(letter.reason()).isEqualTo("never");
		assertThat(letter.event().data()).isEqualTo("b");
		assertThat(letter.event().id()).isEqualTo(ids.get(1));
	}

	@Test
	void takesAnyDelay() {
		this.client.subscribe(this.queue, "c");
		long id = this.client.send(this.queue, "t", "a", EventExtras.NONE);
		this.client.tickAll();
		Page page = this.client.receiveBatch(this.queue, "c", 10, 1_000_000);
		SettleResult result = this.client.settle(page.batchId(), null,
				List.of(Nack.retry(id, Duration.ofSeconds(Long.MAX_VALUE), null)));
		assertThat(result.retried()).isOne();
		assertThat(this.database.value(Boolean.class,
				"select ev_retry_after > now() + interval '99 years' from pgque.retry_queue where ev_id = ?"
						+ " and ev_queue = (select queue_id from pgque.queue where queue_name = ?)",
				id, this.queue))
			.isTrue();
	}

	@Test
	void retriesAndReplays() {
		this.client.setQueueConfig(this.queue, "max_retries", "1");
		this.client.subscribe(this.queue, "c");
		this.client.subscribe(this.queue, "other");
		long id = this.client.send(this.queue, "t", "a", EventExtras.NONE);
		this.client.tickAll();
		Page page = this.client.receiveBatch(this.queue, "c", 10, 1_000_000);
		this.client.settle(page.batchId(), null, List.of(Nack.retry(id, Duration.ZERO, "first")));
		assertThat(this.client.moveDueRetries()).isOne();
		assertThat(this.client.moveDueRetries()).isZero();
		this.client.tickAll();
		Page again = this.client.receiveBatch(this.queue, "c", 10, 1_000_000);
		assertThat(again.rows()).singleElement().extracting(EventRow::id, EventRow::retryCount).containsExactly(id, 1);
		assertThat(
				this.client.settle(again.batchId(), null, List.of(Nack.retry(id, Duration.ZERO, "second"))).deadIds())
			.containsExactly(id);
		DeadLetterRow letter = this.client.deadLetters(null, 10)
			.stream()
			.filter((row) -> row.queue().equals(this.queue))
			.findFirst()
			.orElseThrow();
		assertThat(this.client.redeliver(letter.id())).isEqualTo(id);
		assertThat(this.client.deadLetters(this.queue, 10)).isEmpty();
		assertThatExceptionOfType(PgqueException.class).isThrownBy(() -> this.client.replay(letter.id()))
			.withMessageContaining("There is no dead letter " + letter.id());
		assertThat(this.client.redeliverAll(this.queue)).isEqualTo(new ReplayAllRow(0, 0, null));
		assertThat(this.client.purge(this.queue, Duration.ZERO)).isZero();
	}

	@Test
	void describesQueuesAndConsumers() {
		this.client.setQueueConfig(this.queue, "ticker_max_lag", "PT0.25S");
		this.client.subscribe(this.queue, "c");
		QueueRow row = this.client.queues()
			.stream()
			.filter((candidate) -> candidate.name().equals(this.queue))
			.findFirst()
			.orElseThrow();
		assertThat(row.tickerMaxLag()).isEqualTo(Duration.ofMillis(250));
		assertThat(row.rotationPeriod()).isEqualTo(Duration.ofHours(2));
		assertThat(row.tickerIdlePeriod()).isEqualTo(Duration.ofMinutes(1));
		assertThat(row.tickerMaxCount()).isEqualTo(500);
		assertThat(row.lastTickId()).isPositive();
		assertThat(row.tickerLag()).isNotNull();
		assertThat(this.client.consumers()).filteredOn((consumer) -> consumer.queue().equals(this.queue))
			.singleElement()
			.satisfies((consumer) -> {
				assertThat(consumer.consumer()).isEqualTo("c");
				assertThat(consumer.lag()).isNotNull();
				assertThat(consumer.currentBatchId()).isNull();
				assertThat(consumer.pendingEvents()).isZero();
			});
	}

	@Test
	void maintains() {
		this.client.maintain();
		this.client.finishRotation();
		assertThat(this.client.scheduler()).isEqualTo("manual");
		assertThat(this.client.version()).isNotEmpty();
	}

	@Test
	void quotesNamesByBinding() {
		String name = "Ev'il\"-.\u00e9";
		assertThat(this.client.createQueue(name)).isTrue();
		this.client.subscribe(name, name);
		this.client.send(name, name, "x", EventExtras.NONE);
		assertThat(this.client.tick(List.of(name))).extracting(TickResult::queue).containsExactly(name);
		assertThat(this.client.receiveBatch(name, name, 10, 1_000_000).rows()).hasSize(1);
	}

	@Test
	void unknownQueueIsNamedWithTheWayOut() {
		assertThatExceptionOfType(QueueNotFoundException.class)
			.isThrownBy(() -> this.client.send("it's not there", "t", "x", EventExtras.NONE))
			.withMessageContaining("'it's not there'")
			.withMessageContaining("pgque.create_queue('it''s not there')")
			.satisfies((ex) -> {
				assertThat(ex.getQueue()).isEqualTo("it's not there");
				assertThat(ex.getSqlState()).isEqualTo("P0001");
				assertThat(ex.getRootCause()).isInstanceOf(SQLException.class);
			});
		assertThatExceptionOfType(QueueNotFoundException.class)
			.isThrownBy(() -> this.client.sendBatch("nope", "t", List.of("x")));
		assertThatExceptionOfType(QueueNotFoundException.class).isThrownBy(() -> this.client.subscribe("nope", "c"));
		assertThatExceptionOfType(QueueNotFoundException.class).isThrownBy(() -> this.client.dropQueue("nope", true));
		assertThatExceptionOfType(QueueNotFoundException.class)
			.isThrownBy(() -> this.client.setQueueConfig("nope", "max_retries", "1"));
	}

	@Test
	void unknownSubscriptionIsTold() {
		assertThatExceptionOfType(SubscriptionNotFoundException.class)
			.isThrownBy(() -> this.client.receiveBatch(this.queue, "nobody", 10, 1000))
			.withMessageContaining(this.queue + "/nobody");
	}

	@Test
	void missingGrantIsTold() {
		PgqueClient writer = new PgqueClient(this.database.createLogin("pgque_writer").dataSource());
		assertThat(writer.send(this.queue, "t", "x", EventExtras.NONE)).isPositive();
		assertThatExceptionOfType(MissingPrivilegeException.class).isThrownBy(() -> writer.subscribe(this.queue, "c"))
			.withMessageContaining("pgque_reader to consume");
		assertThatExceptionOfType(MissingPrivilegeException.class).isThrownBy(writer::tickAll)
			.withMessageContaining("pgque_admin");
	}

	@Test
	void missingSchemaIsTold() {
		try (TestDatabase empty = TestDatabase.empty()) {
			PgqueClient client = new PgqueClient(empty.dataSource());
			assertThatExceptionOfType(PgqueSchemaException.class)
				.isThrownBy(() -> client.send("q", "t", "x", EventExtras.NONE))
				.withMessageContaining("pgque.schema.mode=migrate");
		}
	}

	@Test
	void otherDatabaseIsTold() {
		PgqueClient client = new PgqueClient(new DriverManagerDataSource("jdbc:h2:mem:client", "sa", ""));
		assertThatExceptionOfType(UnsupportedDatabaseException.class)
			.isThrownBy(() -> client.send("q", "t", "x", EventExtras.NONE))
			.withMessageContaining("H2")
			.withMessageContaining("spring.datasource.url");
	}

	@Test
	void oldPostgresIsTold() {
		assertThat(new DatabaseProduct("PostgreSQL", 13).unsupported(null)).hasMessageContaining("leads to version 13")
			.hasMessageContaining("PostgreSQL 14 or newer");
		assertThat(new DatabaseProduct("PostgreSQL", 14).isSupported()).isTrue();
	}

	@Test
	void commitsByItselfWithAutoCommitOff() {
		try (HikariDataSource pool = poolWithoutAutoCommit()) {
			PgqueClient pooled = new PgqueClient(pool);
			pooled.createQueue(this.queue + "-kept");
			assertThat(this.client.queueExists(this.queue + "-kept")).isTrue();
		}
	}

	@Test
	void joinsTransactionWithAutoCommitOff() {
		try (HikariDataSource pool = poolWithoutAutoCommit()) {
			PgqueClient pooled = new PgqueClient(pool);
			new TransactionTemplate(new JdbcTransactionManager(pool)).executeWithoutResult((status) -> {
				pooled.createQueue(this.queue + "-gone");
				status.setRollbackOnly();
			});
			assertThat(this.client.queueExists(this.queue + "-gone")).isFalse();
		}
	}

	@Test
	void boundsStatementsInTime() throws SQLException {
		try (HikariDataSource pool = this.database.pool(1)) {
			PgqueClient bounded = new PgqueClient(pool, Duration.ofSeconds(7));
			bounded.version();
			assertThatExceptionOfType(PgqueException.class).isThrownBy(() -> bounded.replay(-1));
			assertThat(networkTimeout(pool)).isEqualTo(networkTimeout(this.database.dataSource()));
		}
	}

	private HikariDataSource poolWithoutAutoCommit() {
		HikariConfig config = new HikariConfig();
		config.setDataSource(this.database.dataSource());
		config.setMaximumPoolSize(1);
		config.setAutoCommit(false);
		return new HikariDataSource(config);
	}

	private static int networkTimeout(DataSource dataSource) throws SQLException {
		try (Connection connection = dataSource.getConnection()) {
			return connection.getNetworkTimeout();
		}
	}

	@Test
	void tickDoesNotWaitForTheDiskUnlessItIsTheCallersTransaction() {
		HikariDataSource pool = this.database.pool(1);
		PgqueClient pooled = new PgqueClient(pool);
		JdbcTemplate jdbc = new JdbcTemplate(pool);
		jdbc.execute("set synchronous_commit = on");
		pooled.send(this.queue, "t", "x", EventExtras.NONE);
		new TransactionTemplate(new JdbcTransactionManager(pool)).executeWithoutResult((status) -> {
			assertThat(pooled.tick(List.of(this.queue))).hasSize(1);
			assertThat(jdbc.queryForObject("show synchronous_commit", String.class)).isEqualTo("on");
			status.setRollbackOnly();
		});
		assertThat(pooled.tick(List.of(this.queue))).hasSize(1);
		assertThat(jdbc.queryForObject("show synchronous_commit", String.class)).isEqualTo("on");
	}

}
