package io.pgque.client;

import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.MissingPrivilegeException;
import io.pgque.PgqueException;
import io.pgque.QueueNotFoundException;
import io.pgque.ReadOnlyTransactionException;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.StatementCounter;
import io.pgque.testsupport.TestDatabase;
import io.pgque.testsupport.TestDatabase.LoginRole;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

import org.springframework.dao.QueryTimeoutException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

/**
 * Tests for {@link DirectSends}.
 */
@PgqueDatabase
class DirectSendsTests {

	private static int number;

	private final TestDatabase database;

	private final PgqueClient admin;

	private final String queue = "direct-" + (++number);

	private final StatementCounter dataSource;

	private final AtomicLong nanos = new AtomicLong();

	private final DirectSends sends;

	DirectSendsTests(TestDatabase database) {
		this.database = database;
		this.admin = new PgqueClient(database.dataSource());
		this.dataSource = new StatementCounter(database.dataSource());
		this.sends = sends();
	}

	@BeforeEach
	void createQueue() {
		this.admin.createQueue(this.queue);
	}

	@Test
	void firstSendAsksWhereTheNextOnesGo() {
		assertThat(send("a")).isEqualTo(1);
		assertThat(ways()).containsExactly("ask");
		assertThat(send("b")).isEqualTo(2);
		assertThat(send("c")).isEqualTo(3);
		assertThat(ways()).containsExactly("ask", table(0), table(0));
	}

	@Test
	void clientSendsSo() {
		PgqueClient client = new PgqueClient(this.dataSource);
		client.send(this.queue, "t", "a", EventExtras.NONE);
		client.send(this.queue, "t", "b", EventExtras.NONE);
		assertThat(ways()).containsExactly("ask", table(0));
	}

	@Test
	void batchGoesWhereSingleEventsDo() {
		PgqueClient client = new PgqueClient(this.dataSource);
		this.admin.subscribe(this.queue, "c");
		assertThat(client.sendBatch(this.queue, "t", List.of("a", "b"))).containsExactly(1L, 2L);
		client.send(this.queue, "t", "c", EventExtras.NONE);
		List<String> payloads = Arrays.asList("d", null, "{\"f\": \"g,h\"}", "");
		assertThat(client.sendBatch(this.queue, "t", payloads)).containsExactly(4L, 5L, 6L, 7L);
		assertThat(client.sendBatch(this.queue, "t", List.of())).isEmpty();
		rotate();
		assertThat(client.sendBatch(this.queue, "t", List.of("i"))).containsExactly(8L);
		assertThat(client.sendBatch(this.queue, "t", List.of("j"))).containsExactly(9L);
		assertThat(slots()).containsExactly(0, 0, 0, 0, 0, 0, 0, 1, 1);
		assertThat(ways()).containsExactly("ask", table(0), table(0), "call", table(0), "ask", table(1));
		this.admin.tickAll();
		assertThat(this.admin.receiveBatch(this.queue, "c", 10, 1000).rows()).extracting(EventRow::data)
			.containsExactly("a", "b", "c", "d", null, "{\"f\": \"g,h\"}", "", "i", "j");
	}

	@Test
	void carriesEveryPartOfAnEvent() {
		this.admin.subscribe(this.queue, "c");
		send("a");
		this.sends.send(this.queue, "t", "d\u00e4ta", new EventExtras("1", "2", null, "4"));
		this.sends.send(this.queue, null, null, EventExtras.NONE);
		assertThat(ways()).containsExactly("ask", table(0), table(0));
		this.admin.tickAll();
		List<EventRow> rows = this.admin.receiveBatch(this.queue, "c", 10, 1000).rows();
		assertThat(rows).extracting(EventRow::id).containsExactly(1L, 2L, 3L);
		assertThat(rows.get(1)).usingRecursiveComparison()
			.ignoringFields("createdAt", "batchId")
			.isEqualTo(new EventRow(2, 0, "t", "d\u00e4ta", null, rows.get(1).createdAt(), "1", "2", null, "4"));
		assertThat(rows.get(2)).usingRecursiveComparison()
			.ignoringFields("createdAt", "batchId")
			.isEqualTo(new EventRow(3, 0, null, null, null, rows.get(2).createdAt(), null, null, null, null));
	}

	@Test
	void rowIsTheOneThatTheFunctionMakes() {
		send("a");
		transaction().executeWithoutResult((status) -> {
			this.sends.send(this.queue, "t", "a", EventExtras.NONE);
			new JdbcTemplate(this.dataSource).queryForObject("select pgque.insert_event(?, 't', 'a')", Long.class,
					this.queue);
		});
		assertThat(this.database.query("""
				select to_jsonb(e) - 'ev_id' as event, count(*)::int as count from pgque.event e
				where e.ev_queue = ? and e.ev_id > 1 group by 1
				""", queueId())).extracting((row) -> row.get("count")).containsExactly(2);
	}

	@Test
	void rotationLeadsToTheNextTable() {
		this.admin.subscribe(this.queue, "c");
		send("a");
		send("b");
		rotate();
		transaction().executeWithoutResult((status) -> send("c"));
		send("d");
		assertThat(ways()).containsExactly("ask", table(0), table(0), "ask", table(1));
		assertThat(slots()).containsExactly(0, 0, 1, 1);
	}

	@Test
	void disabledQueueRefusesAtOnce() {
		send("a");
		disable(true);
		assertThatExceptionOfType(PgqueException.class).isThrownBy(() -> send("b"))
			.withMessageContaining("Insert into queue disallowed");
		disable(false);
		send("c");
		send("d");
		assertThat(ways()).containsExactly("ask", table(0), "ask", "ask", table(0));
		assertThat(slots()).hasSize(3);
	}

	@Test
	void queueThatWasDroppedAndCreatedAgainGetsTheEvent() {
		send("a");
		this.admin.dropQueue(this.queue, true);
		this.admin.createQueue(this.queue);
		assertThat(send("b")).isEqualTo(1);
		assertThat(send("c")).isEqualTo(2);
		assertThat(slots()).hasSize(2);
	}

	@Test
	void tablesThatOutliveTheirQueueGetNothing() throws SQLException {
		send("a");
		int old = queueId();
		try (Connection holder = this.database.connect(); Statement statement = holder.createStatement()) {
			holder.setAutoCommit(false);
			statement.execute("lock table pgque.event_" + old + "_0 in access share mode");
			this.admin.dropQueue(this.queue, true);
			transaction().executeWithoutResult((status) -> assertThatExceptionOfType(QueueNotFoundException.class)
				.isThrownBy(() -> send("nowhere"))
				.withMessageContaining("'" + this.queue + "' does not exist"));
			this.admin.createQueue(this.queue);
			transaction().executeWithoutResult((status) -> assertThat(send("b")).isEqualTo(1));
			assertThat(this.database.values(Long.class, "select ev_id from pgque.event_" + old + "_0"))
				.containsExactly(1L);
			assertThat(slots()).hasSize(1);
			holder.rollback();
		}
	}

	@Test
	void droppedQueueSpoilsOneTransactionAtMost() {
		send("a");
		this.admin.dropQueue(this.queue, true);
		assertThatExceptionOfType(QueueNotFoundException.class)
			.isThrownBy(() -> transaction().executeWithoutResult((status) -> send("b")))
			.satisfies((ex) -> assertThat(ex.getQueue()).isEqualTo(this.queue))
			.withMessageContaining("'" + this.queue + "' does not exist, or was dropped and created again")
			.withMessageContaining("pgque.create_queue('" + this.queue + "')");
		this.admin.createQueue(this.queue);
		transaction().executeWithoutResult((status) -> assertThat(send("c")).isEqualTo(1));
		assertThat(slots()).hasSize(1);
	}

	@Test
	void droppedQueueIsMissingOutsideATransaction() {
		send("a");
		this.admin.dropQueue(this.queue, true);
		assertThatExceptionOfType(QueueNotFoundException.class).isThrownBy(() -> send("b"))
			.withMessageContaining("'" + this.queue + "' does not exist.");
		assertThat(ways()).endsWith("ask");
	}

	@Test
	void queueOfATransactionThatIsRolledBackLeavesNoPlace() {
		transaction().executeWithoutResult((status) -> {
			new JdbcTemplate(this.dataSource).queryForObject("select pgque.create_queue(?)", Integer.class,
					this.queue + "-new");
			this.sends.send(this.queue + "-new", "t", "a", EventExtras.NONE);
			status.setRollbackOnly();
		});
		this.admin.createQueue(this.queue + "-new");
		transaction().executeWithoutResult(
				(status) -> assertThat(this.sends.send(this.queue + "-new", "t", "b", EventExtras.NONE)).isEqualTo(1));
	}

	@Test
	void databasesBehindOneDataSourceAreToldApart() {
		try (TestDatabase other = TestDatabase.migrated()) {
			PgqueClient otherAdmin = new PgqueClient(other.dataSource());
			for (int id = 1; id <= queueId(); id++) {
				otherAdmin.createQueue("other-" + id);
			}
			otherAdmin.createQueue(this.queue);
			StatementCounter first = new StatementCounter(this.database.dataSource());
			StatementCounter second = new StatementCounter(other.dataSource());
			AtomicInteger tenant = new AtomicInteger();
			for (DataSource routing : List.of(new Routing(tenant, first, second), new Hidden(tenant, first, second))) {
				PgqueClient client = new PgqueClient(routing);
				for (int i = 0; i < 6; i++) {
					tenant.set(i % 2);
					client.send(this.queue, "t", "x", EventExtras.NONE);
				}
			}
			assertThat(first.statements().get(0)).contains("event_place");
			assertThat(first.statements().subList(1, 3)).as("it says that it leads to several")
				.allMatch((sql) -> sql.contains("insert_event") && !sql.contains("event_place"));
			String counts = "select count(*)::int from pgque.event e join pgque.queue q on q.queue_id = e.ev_queue"
					+ " where q.queue_name = ?";
			assertThat(this.database.value(Integer.class, counts, this.queue)).isEqualTo(6);
			assertThat(other.value(Integer.class, counts, this.queue)).isEqualTo(6);
			assertThat(other.value(Integer.class, "select count(*)::int from pgque.event")).isEqualTo(6);
		}
	}

	@Test
	void writerNeedsNoMore() {
		LoginRole writer = this.database.createLogin("pgque_writer");
		StatementCounter counter = new StatementCounter(writer.dataSource());
		PgqueClient client = new PgqueClient(counter);
		for (int i = 0; i < 3; i++) {
			client.send(this.queue, "t", "a", EventExtras.NONE);
			client.send(this.queue, "t", "a", new EventExtras("k", null, null, null));
		}
		assertThat(counter.statements()).filteredOn((sql) -> sql.startsWith("insert")).hasSize(5);
	}

	@Test
	void whoeverMayOnlyCallFunctionsDoes() {
		LoginRole caller = this.database.createLogin();
		this.database.execute("grant usage on schema pgque to " + caller.name());
		this.database.execute("grant execute on function pgque.insert_event(text, text, text, text, text, text, text),"
				+ " pgque.event_place(text) to " + caller.name());
		try {
			StatementCounter counter = new StatementCounter(caller.dataSource());
			DirectSends sends = new DirectSends(new Statements(counter, null), this.nanos::get);
			for (int i = 0; i < 3; i++) {
				sends.send(this.queue, "t", "a", EventExtras.NONE);
			}
			assertThat(counter.statements()).noneMatch((sql) -> sql.startsWith("insert"));
			this.database.execute("grant select on pgque.queue to " + caller.name());
			this.nanos.addAndGet(Duration.ofMinutes(1).toNanos());
			sends.send(this.queue, "t", "a", EventExtras.NONE);
			sends.send(this.queue, "t", "a", EventExtras.NONE);
			assertThat(counter.statements()).noneMatch((sql) -> sql.startsWith("insert"));
			assertThat(slots()).hasSize(5);
		}
		finally {
			this.database.execute("drop owned by " + caller.name());
		}
	}

	@Test
	void withdrawnPrivilegeIsMissedOnce() {
		LoginRole caller = this.database.createLogin("pgque_writer");
		PgqueClient client = new PgqueClient(caller.dataSource());
		client.send(this.queue, "t", "a", EventExtras.NONE);
		client.send(this.queue, "t", "b", EventExtras.NONE);
		this.database.execute("revoke insert (ev_data) on pgque.event_" + queueId() + "_0 from pgque_writer");
		assertThatExceptionOfType(MissingPrivilegeException.class)
			.isThrownBy(() -> client.send(this.queue, "t", "c", EventExtras.NONE));
		client.send(this.queue, "t", "d", EventExtras.NONE);
		assertThat(slots()).hasSize(3);
	}

	@Test
	void noAnswerIsAskedForAgainAfterAMinute() {
		this.database.execute("alter table pgque.event_" + queueId() + "_0 alter ev_id set default 7");
		send("a");
		send("b");
		this.nanos.addAndGet(Duration.ofSeconds(59).toNanos());
		send("c");
		this.nanos.addAndGet(Duration.ofSeconds(1).toNanos());
		send("d");
		send("e");
		assertThat(ways()).containsExactly("ask", "call", "call", "ask", "call");
		assertThat(slots()).hasSize(5);
	}

	@Test
	void statementsThatAreNotKeptAreCallsOfTheFunction() {
		for (String setting : List.of("prepareThreshold=0", "preferQueryMode=simple")) {
			PGSimpleDataSource plain = new PGSimpleDataSource();
			plain.setUrl(this.database.url() + "?" + setting);
			plain.setUser(this.database.user());
			plain.setPassword(this.database.password());
			StatementCounter counter = new StatementCounter(plain);
			PgqueClient client = new PgqueClient(counter);
			for (int i = 0; i < 3; i++) {
				client.send(this.queue, "t", "a", EventExtras.NONE);
			}
			assertThat(counter.statements()).hasSize(3).noneMatch((sql) -> sql.startsWith("insert"));
		}
	}

	@Test
	void poolDoesNotHideTheDriver() {
		try (HikariDataSource pool = new HikariDataSource()) {
			pool.setDataSource(this.dataSource);
			pool.setMaximumPoolSize(1);
			DirectSends sends = new DirectSends(new Statements(pool, null));
			sends.send(this.queue, "t", "a", EventExtras.NONE);
			sends.send(this.queue, "t", "b", EventExtras.NONE);
			assertThat(ways()).containsExactly("ask", table(0));
		}
	}

	@Test
	void connectionThatDoesNotShowItsDriverKeepsNothing() {
		assertThat(DirectSends.keepsStatements(connection((type) -> false))).isFalse();
		assertThat(DirectSends.keepsStatements(connection((type) -> {
			throw new SQLFeatureNotSupportedException("isWrapperFor");
		}))).isFalse();
	}

	private static Connection connection(Answer isWrapperFor) {
		return (Connection) Proxy.newProxyInstance(DirectSendsTests.class.getClassLoader(),
				new Class<?>[] { Connection.class }, (proxy, method, arguments) -> {
					assertThat(method.getName()).isEqualTo("isWrapperFor");
					return isWrapperFor.of((Class<?>) arguments[0]);
				});
	}

	@Test
	void readOnlyTransactionAndTimeoutAreReportedAsEver() throws SQLException {
		send("a");
		send("b");
		assertThatExceptionOfType(ReadOnlyTransactionException.class)
			.isThrownBy(() -> transaction().executeWithoutResult((status) -> {
				new JdbcTemplate(this.dataSource).execute("set transaction read only");
				send("c");
			}));
		send("d");
		try (Connection holder = this.database.connect(); Statement statement = holder.createStatement()) {
			holder.setAutoCommit(false);
			statement.execute("lock table pgque.event_" + queueId() + "_0 in access exclusive mode");
			assertThatExceptionOfType(QueryTimeoutException.class)
				.isThrownBy(() -> transaction().executeWithoutResult((status) -> {
					new JdbcTemplate(this.dataSource).execute("set local statement_timeout = '50ms'");
					send("e");
				}));
			holder.rollback();
		}
		send("f");
		assertThat(slots()).hasSize(4);
	}

	@Test
	void transactionHasItsIdBeforeTheEventHasIts() throws SQLException {
		send("a");
		CompletableFuture<Long> sent;
		try (Connection holder = this.database.connect(); Statement statement = holder.createStatement()) {
			holder.setAutoCommit(false);
			statement.execute("alter sequence pgque.event_" + queueId() + "_id_seq cache 1");
			sent = CompletableFuture.supplyAsync(() -> send("b"), (task) -> new Thread(task).start());
			await().until(() -> !waiting().isEmpty());
			assertThat(waiting()).containsExactly(true);
			holder.rollback();
		}
		assertThat(sent.join()).isEqualTo(2);
		assertThat(ways()).endsWith(table(0));
	}

	/**
	 * Of each session that waits for an event's id, whether its transaction has one.
	 */
	private List<Boolean> waiting() {
		return this.database.values(Boolean.class,
				"select backend_xid is not null from pg_stat_activity where wait_event_type = 'Lock'"
						+ " and query like 'insert into " + table(0) + " %'");
	}

	private DirectSends sends() {
		return new DirectSends(new Statements(this.dataSource, null), this.nanos::get);
	}

	private long send(String data) {
		return this.sends.send(this.queue, "t", data, EventExtras.NONE);
	}

	private TransactionTemplate transaction() {
		return new TransactionTemplate(new JdbcTransactionManager(this.dataSource));
	}

	private int queueId() {
		return this.database.value(Integer.class, "select queue_id from pgque.queue where queue_name = ?", this.queue);
	}

	private void disable(boolean disabled) {
		this.database.update("update pgque.queue set queue_disable_insert = ? where queue_name = ?", disabled,
				this.queue);
	}

	private void rotate() {
		this.database.update("update pgque.queue set queue_switch_time = now() - interval '1 day' where queue_name = ?",
				this.queue);
		this.database.query("select pgque.maint_rotate_tables_step1(?)", this.queue);
		this.database.query("select pgque.maint_rotate_tables_step2()");
	}

	private List<Integer> slots() {
		return this.database.values(Integer.class,
				"select ev_slot::int from pgque.event where ev_queue = ? order by ev_id", queueId());
	}

	private String table(int slot) {
		return "pgque.event_" + queueId() + "_" + slot;
	}

	/**
	 * Say of each statement that sent, or tried to, what it was.
	 */
	private List<String> ways() {
		return this.dataSource.statements().stream().map((sql) -> {
			if (sql.startsWith("insert into ")) {
				return sql.split(" ")[2];
			}
			return sql.contains("pgque.event_place") ? "ask" : "call";
		}).toList();
	}

	/**
	 * Leads to the database of a tenant.
	 */
	private static final class Routing extends AbstractRoutingDataSource {

		private final AtomicInteger tenant;

		private Routing(AtomicInteger tenant, DataSource first, DataSource second) {
			this.tenant = tenant;
			setTargetDataSources(Map.of(0, first, 1, second));
			afterPropertiesSet();
		}

		@Override
		protected Object determineCurrentLookupKey() {
			return this.tenant.get();
		}

	}

	/**
	 * Leads to the database of a tenant, and hides it.
	 */
	private static final class Hidden extends DelegatingDataSource {

		private final AtomicInteger tenant;

		private final List<DataSource> targets;

		private Hidden(AtomicInteger tenant, DataSource... targets) {
			super(targets[0]);
			this.tenant = tenant;
			this.targets = List.of(targets);
		}

		@Override
		public Connection getConnection() throws SQLException {
			return this.targets.get(this.tenant.get()).getConnection();
		}

	}

	/**
	 * Answers a question about a connection.
	 */
	private interface Answer {

		boolean of(Class<?> type) throws SQLException;

	}

}
