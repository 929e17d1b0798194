package io.pgque.listener;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TcpProxy;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.PGConnection;
import org.postgresql.ds.PGSimpleDataSource;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import static io.pgque.listener.ContainerDeliveryTests.count;
import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link WakeupListener}, and for containers that live by it.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class WakeupListenerTests {

	private static final String LISTENING = "pg_catalog.pg_stat_activity where datname = current_database()"
			+ " and (query ilike 'listen %' or query ilike 'unlisten %' or query = 'show transaction_read_only')"
			+ " and pid <> pg_backend_pid()";

	private final TestDatabase database;

	private ListenerFixture fixture;

	WakeupListenerTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database);
		this.fixture.properties.setPollInterval(Duration.ofSeconds(1));
		this.fixture.properties.setFallbackPollInterval(Duration.ofHours(1));
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
		await().until(() -> listening() == 0);
	}

	private int listening() {
		return this.database.value(Integer.class, "select count(*)::int from " + LISTENING);
	}

	private static long wakeupThreads() {
		return Thread.getAllStackTraces()
			.keySet()
			.stream()
			.filter((thread) -> thread.getName().equals("pgque-wakeup"))
			.count();
	}

	private void killListening() {
		assertThat(this.database.values(Boolean.class, "select pg_terminate_backend(pid) from " + LISTENING))
			.hasSize(1);
	}

	@Test
	void tickWakesContainersOfItsQueue() {
		WakeupListener wakeups = this.fixture.wakeups();
		// Names that only quoting keeps as they are.
		List<String> queues = List.of("plain", "Mixed-Case.and \"quoted\" \u00e9\uD83D\uDE00");
		AtomicInteger handled = new AtomicInteger();
		for (String queue : queues) {
			var container = this.fixture.container(queue,
					ListenerFixture.routes((message) -> handled.incrementAndGet()),
					(created) -> created.setWakeupListener(wakeups));
			container.start();
			await().until(() -> wakeups.isListening(queue));
		}
		for (int round = 1; round <= 20; round++) {
			int expected = round;
			queues.forEach((queue) -> this.fixture.send(queue, "type", "payload"));
			await().atMost(Duration.ofSeconds(2)).until(() -> handled.get() == 2 * expected);
		}
		assertThat(listening()).isOne();
	}

	@Test
	void connectionIsNotOfThePool() throws Exception {
		HikariDataSource single = this.database.pool(1);
		long threadsBefore = wakeupThreads();
		try (ListenerFixture fixture = new ListenerFixture(this.database, single)) {
			WakeupListener wakeups = fixture.wakeups();
			var container = fixture.container("own_connection", ListenerFixture.routes((message) -> {
			}), (created) -> created.setWakeupListener(wakeups));
			container.start();
			await().until(() -> wakeups.isListening("own_connection"));
			await().until(() -> single.getHikariPoolMXBean().getActiveConnections() == 0);
			assertThat(listening()).isOne();
			assertThat(time(() -> {
				container.stop();
				wakeups.destroy();
			})).isLessThan(Duration.ofMillis(500));
			assertThat(wakeupThreads()).isEqualTo(threadsBefore);
		}
	}

	@Test
	void listeningEndsWithTheLastContainerAndBeginsAnew() {
		WakeupListener wakeups = this.fixture.wakeups();
		AtomicInteger handled = new AtomicInteger();
		var container = this.fixture.container("again", ListenerFixture.routes((message) -> handled.incrementAndGet()),
				(created) -> created.setWakeupListener(wakeups));
		for (int round = 1; round <= 3; round++) {
			int expected = round;
			container.start();
			await().until(() -> wakeups.isListening("again"));
			this.fixture.send("again", "type", "payload");
			await().atMost(Duration.ofSeconds(2)).until(() -> handled.get() == expected);
			container.stop();
		}
		await().until(() -> listening() == 0);
	}

	@Test
	void terminatedConnectionComesBack(CapturedOutput output) {
		WakeupListener wakeups = this.fixture.wakeups();
		AtomicInteger handled = new AtomicInteger();
		var container = this.fixture.container("terminated",
				ListenerFixture.routes((message) -> handled.incrementAndGet()),
				(created) -> created.setWakeupListener(wakeups));
		container.start();
		await().until(() -> wakeups.isListening("terminated"));
		killListening();
		await().until(() -> !wakeups.isListening("terminated"));
		// Nobody listens, so it is polling that finds this one.
		this.fixture.send("terminated", "type", "payload");
		await().until(() -> handled.get() == 1);
		await().until(() -> wakeups.isListening("terminated"));
		this.fixture.send("terminated", "type", "payload");
		await().atMost(Duration.ofSeconds(2)).until(() -> handled.get() == 2);
		assertThat(count(output, "Listening for notifications failed")).isOne();
		await().untilAsserted(() -> assertThat(output).contains("Listening for notifications works again"));
	}

	@Test
	void connectionWhosePacketsAreLostIsReplaced(CapturedOutput output) throws Exception {
		try (TcpProxy proxy = TcpProxy.to(this.database.server().port())) {
			PGSimpleDataSource dataSource = new PGSimpleDataSource();
			dataSource.setUrl("jdbc:postgresql://localhost:" + proxy.port() + "/" + this.database.name());
			dataSource.setUser(this.database.user());
			dataSource.setSocketTimeout(1);
			WakeupListener wakeups = new WakeupListener(dataSource, Duration.ofMillis(300), Duration.ofSeconds(1));
			AtomicInteger handled = new AtomicInteger();
			this.fixture.properties.setPollInterval(Duration.ofMillis(100));
			var container = this.fixture.container("dropped",
					ListenerFixture.routes((message) -> handled.incrementAndGet()),
					(created) -> created.setWakeupListener(wakeups));
			container.start();
			try {
				await().until(() -> wakeups.isListening("dropped"));
				proxy.swallow();
				this.fixture.send("dropped", "type", "payload");
				// Nothing but the connection's silence tells.
				await().atMost(Duration.ofSeconds(5)).until(() -> handled.get() == 1);
				assertThat(wakeups.isListening("dropped")).isFalse();
				proxy.restore();
				await().until(() -> wakeups.isListening("dropped"));
				this.fixture.send("dropped", "type", "payload");
				await().atMost(Duration.ofSeconds(2)).until(() -> handled.get() == 2);
				assertThat(count(output, "\tat io.pgque.listener.WakeupListener.run")).isOne();
			}
			finally {
				container.stop();
				wakeups.destroy();
			}
		}
	}

	@Test
	void containersPollWhileThereIsNoConnection(CapturedOutput output) {
		AtomicBoolean available = new AtomicBoolean();
		WakeupListener wakeups = new WakeupListener(new DelegatingDataSource(this.database.dataSource()) {

			@Override
			public Connection getConnection() throws SQLException {
				if (!available.get()) {
					throw new SQLException("no connection to be had");
				}
				return super.getConnection();
			}

		});
		AtomicInteger handled = new AtomicInteger();
		var container = this.fixture.container("unavailable",
				ListenerFixture.routes((message) -> handled.incrementAndGet()),
				(created) -> created.setWakeupListener(wakeups));
		container.start();
		try {
			this.fixture.send("unavailable", "type", "payload");
			await().until(() -> handled.get() == 1);
			this.fixture.send("unavailable", "type", "payload");
			await().until(() -> handled.get() == 2);
			assertThat(count(output, "\tat io.pgque.listener.WakeupListener.run")).isLessThanOrEqualTo(1);
			available.set(true);
			await().until(() -> wakeups.isListening("unavailable"));
			available.set(false);
		}
		finally {
			container.stop();
			assertThat(time(wakeups::destroy)).isLessThan(Duration.ofMillis(500));
		}
	}

	@Test
	void everyBackendIsKilledAgainAndAgain() {
		HikariDataSource pool = this.database.pool(4);
		this.fixture = new ListenerFixture(this.database, pool);
		this.fixture.properties.setPageSize(50);
		WakeupListener wakeups = this.fixture.wakeups();
		List<Long> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("killed", ListenerFixture.routes((message) -> handled.add(message.id())),
				(created) -> created.setWakeupListener(wakeups));
		this.fixture.client.createQueue("killed");
		container.start();
		List<Long> sent = new CopyOnWriteArrayList<>();
		try (ListenerFixture sender = new ListenerFixture(this.database, this.database.dataSource())) {
			for (int round = 0; round < 5; round++) {
				sent.addAll(sender.send("killed", 500));
				int expected = sent.size() - 300;
				await().until(() -> handled.stream().distinct().count() > expected);
				this.database.query("select pg_terminate_backend(pid) from pg_catalog.pg_stat_activity"
						+ " where datname = current_database() and pid <> pg_backend_pid()");
			}
			await().until(() -> sender.isDrained("killed"));
			assertThat(handled).containsAll(sent);
			await().until(() -> wakeups.isListening("killed"));
			sent.addAll(sender.send("killed", 1));
			await().atMost(Duration.ofSeconds(2)).untilAsserted(() -> assertThat(handled).containsAll(sent));
		}
		catch (Exception ex) {
			throw new IllegalStateException(ex);
		}
	}

	/**
	 * Statements and notifications belong to different server connections, as they do
	 * behind a pooler in transaction mode.
	 */
	@Test
	void silentConnectionIsToldOfAndPolledFor(CapturedOutput output) throws Exception {
		PGConnection somebodyElses = this.database.connect().unwrap(PGConnection.class);
		WakeupListener wakeups = new WakeupListener(new DelegatingDataSource(this.database.dataSource()) {

			@Override
			public Connection getConnection() throws SQLException {
				Connection connection = super.getConnection();
				return (Connection) Proxy.newProxyInstance(getClass().getClassLoader(),
						new Class<?>[] { Connection.class }, (proxy, method, arguments) -> {
							if (method.getName().equals("unwrap")) {
								return somebodyElses;
							}
							try {
								return method.invoke(connection, arguments);
							}
							catch (InvocationTargetException ex) {
								throw ex.getTargetException();
							}
						});
			}

		});
		try {
			AtomicInteger handled = new AtomicInteger();
			this.fixture.properties.setPollInterval(Duration.ofMillis(100));
			var container = this.fixture.container("pooled",
					ListenerFixture.routes((message) -> handled.incrementAndGet()),
					(created) -> created.setWakeupListener(wakeups));
			container.start();
			await().until(() -> output.getOut().contains("pgque.listener.connection.url"));
			assertThat(wakeups.isListening("pooled")).isFalse();
			this.fixture.send("pooled", "type", "payload");
			await().until(() -> handled.get() == 1);
			assertThat(count(output, "Notifications don't arrive")).isOne();
			assertThat(time(() -> {
				container.stop();
				wakeups.destroy();
			})).isLessThan(Duration.ofSeconds(2));
		}
		finally {
			wakeups.destroy();
			((Connection) somebodyElses).close();
		}
	}

	@Test
	void tickOfThisInstanceWakesOnceAndAtOnce() throws SQLException {
		try (WakeupsOf wakeups = new WakeupsOf(this.fixture.wakeups(), "own_ticks")) {
			await().until(() -> wakeups.listener.isListening("own_ticks"));
			int before = wakeups.count.get();
			wakeups.listener.ticked("own_ticks", 17);
			assertThat(wakeups.count.get()).isEqualTo(before + 1);
			this.database.execute("notify pgque_own_ticks, '17'; notify pgque_own_ticks, '18'");
			await().until(() -> wakeups.count.get() == before + 2);
			wakeups.listener.ticked("own_ticks", 18);
			wakeups.listener.ticked("somebody else's", 18);
			this.database.execute("notify pgque_own_ticks, ''");
			await().until(() -> wakeups.count.get() == before + 3);
			this.database.execute("notify pgque_own_ticks, ''");
			await().until(() -> wakeups.count.get() == before + 4);
		}
	}

	/**
	 * Counts how often a queue is woken.
	 */
	private static final class WakeupsOf implements AutoCloseable {

		private final AtomicInteger count = new AtomicInteger();

		private final WakeupListener listener;

		private final WakeupListener.Registration registration;

		WakeupsOf(WakeupListener listener, String queue) {
			this.listener = listener;
			this.registration = listener.register(queue, (subject) -> this.count.incrementAndGet());
		}

		@Override
		public void close() {
			this.registration.close();
		}

	}

}
