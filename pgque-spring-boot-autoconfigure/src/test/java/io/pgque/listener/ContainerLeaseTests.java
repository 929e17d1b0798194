package io.pgque.listener;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.PgqueClient;
import io.pgque.event.ConsumerLeaseAcquiredEvent;
import io.pgque.event.ConsumerLeaseLostEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;

import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for several instances of one consumer, of which one at a time receives. Each
 * container has a heartbeat of its own here, as if it were in a JVM of its own.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class ContainerLeaseTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	ContainerLeaseTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database, this.database.pool(8));
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void oneOfThreeInstancesHandlesEverything() {
		Map<Integer, AtomicInteger> handled = new ConcurrentHashMap<>();
		List<DefaultPgqueMessageListenerContainer> containers = new CopyOnWriteArrayList<>();
		List<Long> ids = new CopyOnWriteArrayList<>();
		for (int i = 0; i < 3; i++) {
			int number = i;
			containers.add(this.fixture.container("three", (message) -> {
				handled.computeIfAbsent(number, (key) -> new AtomicInteger()).incrementAndGet();
				ids.add(message.id());
			}));
		}
		containers.forEach(DefaultPgqueMessageListenerContainer::start);
		List<Long> sent = this.fixture.send("three", 500);
		await().until(() -> this.fixture.isDrained("three"));
		assertThat(ids).isEqualTo(sent);
		assertThat(handled).hasSize(1);
		assertThat(containers).filteredOn(PgqueMessageListenerContainer::isStandby).hasSize(2);
		assertThat(this.fixture.events(ConsumerLeaseAcquiredEvent.class)).singleElement().satisfies((event) -> {
			assertThat(event.getSource()).isSameAs(containers.get(handled.keySet().iterator().next()));
			assertThat(event.getEpoch()).isOne();
			assertThat(event.getSlot()).isNull();
			assertThat(this.database.value(String.class, "select instance from pgque.leases() where queue_name = ?",
					"three"))
				.isEqualTo(event.getInstance());
		});
		assertThat(containers).allSatisfy((container) -> assertThat(container.getCounters().staleSettles()).isZero());
	}

	@Test
	void stopHandsOverAtOnce() {
		// Nobody looks by itself before the test is over.
		this.fixture.properties.setPollInterval(Duration.ofHours(1));
		this.fixture.properties.setFallbackPollInterval(Duration.ofHours(1));
		this.fixture.properties.setLeaseDuration(Duration.ofMinutes(1));
		WakeupListener wakeups = this.fixture.wakeups();
		List<String> handled = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("handover",
				ListenerFixture.routes((message) -> handled.add("first " + message.payload())),
				(container) -> container.setWakeupListener(wakeups));
		var second = this.fixture.container("handover",
				ListenerFixture.routes((message) -> handled.add("second " + message.payload())),
				(container) -> container.setWakeupListener(wakeups));
		first.start();
		await().until(() -> !first.isStandby());
		second.start();
		await().until(() -> wakeups.isListening("handover") && second.isStandby());
		this.fixture.send("handover", "type", "1");
		await().until(() -> handled.equals(List.of("first 1")));
		await().until(() -> this.fixture.isDrained("handover"));
		assertThat(time(() -> {
			first.stop();
			await().until(() -> !second.isStandby());
		})).isLessThan(Duration.ofMillis(500));
		this.fixture.send("handover", "type", "2");
		await().until(() -> handled.equals(List.of("first 1", "second 2")));
		assertThat(this.fixture.events(ConsumerLeaseLostEvent.class)).isEmpty();
	}

	@Test
	void stopInTheMiddleOfABatchHandsTheRestOver() throws Exception {
		CountDownLatch inTheMiddle = new CountDownLatch(1);
		CountDownLatch mayLeave = new CountDownLatch(1);
		List<Long> handled = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("half", (message) -> {
			handled.add(message.id());
			if (message.payload().equals("3")) {
				inTheMiddle.countDown();
				mayLeave.await();
			}
		});
		var second = this.fixture.container("half", (message) -> handled.add(message.id()));
		List<Long> sent = this.fixture.send("half", 1000);
		first.start();
		inTheMiddle.await();
		second.start();
		CountDownLatch stopped = new CountDownLatch(1);
		first.stop(stopped::countDown);
		mayLeave.countDown();
		await().until(() -> this.fixture.isDrained("half"));
		stopped.await();
		assertThat(handled).isEqualTo(sent);
		assertThat(first.getCounters().staleSettles()).isZero();
	}

	@Test
	void silentOwnerFinishesItsHandlerAndSettlesNothingAnyMore(CapturedOutput output) {
		this.fixture.properties.setLeaseDuration(Duration.ofSeconds(1));
		Outage outage = new Outage(this.database);
		CountDownLatch mayLeave = new CountDownLatch(1);
		List<String> byFirst = new CopyOnWriteArrayList<>();
		List<String> bySecond = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("silent", ListenerFixture.routes((message) -> {
			byFirst.add(message.payload());
			if (message.payload().equals("2")) {
				mayLeave.await();
			}
		}), (container) -> container.setInstanceHeartbeat(new InstanceHeartbeat(new PgqueClient(outage))));
		var second = this.fixture.container("silent", (message) -> bySecond.add(message.payload()));
		this.fixture.send("silent", 5);
		first.start();
		await().until(() -> byFirst.size() == 2);
		second.start();
		await().until(second::isStandby);
		outage.begin();
		await().until(() -> this.fixture.isDrained("silent"));
		assertThat(bySecond).as("it comes again, whole").containsExactly("1", "2", "3", "4", "5");
		outage.end();
		mayLeave.countDown();
		await().until(() -> first.getCounters().staleSettles() == 1);
		assertThat(byFirst).as("no handler was started beyond the lease").containsExactly("1", "2");
		await().until(() -> this.fixture.events(ConsumerLeaseLostEvent.class).size() == 1);
		await().untilAsserted(() -> assertThat(this.fixture.events(ConsumerLeaseLostEvent.class)).singleElement()
			.satisfies((event) -> assertThat(event.getSource()).isSameAs(first)));
		await().untilAsserted(() -> assertThat(output).contains("The lease of listener 'silent.consumer'")
			.contains("was no longer open when it was to be settled"));
		await().untilAsserted(() -> assertThat(second.getCounters().handled()).isEqualTo(5));
		assertThat(first.getCounters().handled()).isZero();
		second.stop();
		this.fixture.send("silent", 1);
		await().untilAsserted(() -> assertThat(byFirst).as("it is back").containsExactly("1", "2", "1"));
	}

	@Test
	void nobodyTakesOverFromAnOpenTransaction() {
		this.fixture.properties.setLeaseDuration(Duration.ofSeconds(1));
		this.fixture.properties.setTransactional(true);
		this.database.execute("create table if not exists by_whom (who text, payload text)");
		JdbcTemplate jdbc = new JdbcTemplate(this.fixture.pool);
		JdbcTransactionManager transactions = new JdbcTransactionManager(this.fixture.pool);
		Outage outage = new Outage(this.database);
		CountDownLatch entered = new CountDownLatch(2);
		CountDownLatch mayLeave = new CountDownLatch(1);
		var first = this.fixture.container("in_transaction", ListenerFixture.routes((message) -> {
			jdbc.update("insert into by_whom values ('first', ?)", message.payload());
			entered.countDown();
			if (message.payload().equals("2")) {
				mayLeave.await();
			}
		}), (container) -> {
			container.setTransactionManager(transactions);
			container.setInstanceHeartbeat(new InstanceHeartbeat(new PgqueClient(outage)));
		});
		var second = this.fixture.container("in_transaction",
				ListenerFixture
					.routes((message) -> jdbc.update("insert into by_whom values ('second', ?)", message.payload())),
				(container) -> container.setTransactionManager(transactions));
		this.fixture.send("in_transaction", 3);
		first.start();
		await().until(() -> entered.getCount() == 0);
		second.start();
		await().until(second::isStandby);
		outage.begin();
		// Of the first, the transaction is proof enough that it lives.
		await().during(Duration.ofSeconds(3)).until(second::isStandby);
		mayLeave.countDown();
		await().until(() -> this.fixture.isDrained("in_transaction"));
		outage.end();
		assertThat(this.database.values(String.class, "select who || ' ' || payload from by_whom order by payload"))
			.as("a silent owner commits what it has begun, and begins no more")
			.containsExactly("first 1", "first 2", "second 3");
		assertThat(first.getCounters().staleSettles()).isZero();
	}

	@Test
	void ownerThatWasSilentGoesOnWhenNobodyTookOver() {
		this.fixture.properties.setLeaseDuration(Duration.ofMillis(600));
		Outage outage = new Outage(this.database);
		List<String> handled = new CopyOnWriteArrayList<>();
		CountDownLatch mayLeave = new CountDownLatch(1);
		var container = this.fixture.container("alone", ListenerFixture.routes((message) -> {
			handled.add(message.payload());
			if (message.payload().equals("1")) {
				mayLeave.await();
			}
		}), (created) -> created.setInstanceHeartbeat(new InstanceHeartbeat(new PgqueClient(outage))));
		this.fixture.send("alone", 3);
		container.start();
		await().until(() -> handled.size() == 1);
		outage.begin();
		await().until(container::isStandby);
		mayLeave.countDown();
		await().until(() -> this.fixture.events(ConsumerLeaseLostEvent.class).size() == 1);
		assertThat(handled).containsExactly("1");
		outage.end();
		await().until(() -> this.fixture.isDrained("alone"));
		assertThat(handled).as("what was done is settled").containsExactly("1", "2", "3");
		assertThat(container.getCounters().staleSettles()).isZero();
		await().untilAsserted(() -> assertThat(this.fixture.events(ConsumerLeaseAcquiredEvent.class)).hasSize(2)
			.allSatisfy((event) -> assertThat(event.getEpoch()).isOne()));
	}

	@Test
	void slowHandlerLosesNoLease() {
		this.fixture.properties.setLeaseDuration(Duration.ofMillis(600));
		List<String> handled = new CopyOnWriteArrayList<>();
		CountDownLatch mayLeave = new CountDownLatch(1);
		var first = this.fixture.container("slow", (message) -> {
			handled.add("first");
			mayLeave.await();
		});
		var second = this.fixture.container("slow", (message) -> handled.add("second"));
		this.fixture.send("slow", 1);
		first.start();
		await().until(() -> handled.size() == 1);
		second.start();
		await().during(Duration.ofSeconds(2)).until(() -> second.isStandby() && handled.size() == 1);
		mayLeave.countDown();
		await().until(() -> this.fixture.isDrained("slow"));
		assertThat(handled).containsExactly("first");
		assertThat(first.getCounters().staleSettles()).isZero();
	}

	@Test
	void heartbeatNeedsNoConnectionOfThePool() throws Exception {
		this.fixture.properties.setLeaseDuration(Duration.ofMillis(900));
		HikariDataSource pool = this.database.pool(1);
		pool.setConnectionTimeout(250);
		try (ListenerFixture starved = new ListenerFixture(this.database, pool)) {
			starved.properties.setLeaseDuration(Duration.ofMillis(900));
			var first = starved.container("starved", ListenerFixture.routes((message) -> {
			}), (container) -> container
				.setInstanceHeartbeat(new InstanceHeartbeat(starved.client, this.database.dataSource())));
			var second = this.fixture.container("starved", (message) -> {
			});
			first.start();
			await().until(() -> !first.isStandby());
			second.start();
			try (Connection all = pool.getConnection()) {
				assertThat(all.isValid(1)).isTrue();
				await().during(Duration.ofSeconds(2)).until(() -> second.isStandby() && !first.isStandby());
			}
		}
	}

	@Test
	void heartbeatTakesAConnectionOfThePoolWhileItsOwnFails(CapturedOutput output) {
		this.fixture.properties.setLeaseDuration(Duration.ofMillis(900));
		Outage outage = new Outage(this.database);
		var container = this.fixture.container("fallback", ListenerFixture.routes((message) -> {
		}), (created) -> created.setInstanceHeartbeat(new InstanceHeartbeat(this.fixture.client, outage)));
		outage.begin();
		container.start();
		await().until(() -> !container.isStandby());
		await().during(Duration.ofSeconds(1)).until(() -> !container.isStandby());
		assertThat(output.toString().split("takes connections of the application's pool", -1)).hasSize(2);
		outage.end();
	}

	@Test
	void standbyAsksWhenTheLeaseMayEndAndNotWhenThereAreMessages(CapturedOutput output) {
		this.fixture.properties.setPollInterval(Duration.ofMillis(20));
		this.fixture.properties.setFallbackPollInterval(Duration.ofMillis(20));
		WakeupListener wakeups = this.fixture.wakeups();
		Outage counting = new Outage(this.database);
		ListenerFixture other = new ListenerFixture(this.database, counting);
		var owner = this.fixture.container("standby", (message) -> {
		});
		owner.start();
		await().until(() -> !owner.isStandby());
		other.properties.setPollInterval(Duration.ofMillis(20));
		var standby = other.container("standby", ListenerFixture.routes((message) -> {
		}), (container) -> {
			container.setWakeupListener(wakeups);
			container.setInstanceHeartbeat(new InstanceHeartbeat(this.fixture.client));
		});
		standby.start();
		await().until(() -> output.toString().contains("this one stands by") && wakeups.isListening("standby"));
		int before = counting.connections.get();
		for (int i = 0; i < 20; i++) {
			this.fixture.send("standby", "type", "" + i);
		}
		await().during(Duration.ofSeconds(1)).until(() -> this.fixture.isDrained("standby"));
		assertThat(counting.connections.get() - before).isLessThanOrEqualTo(2);
		standby.stop();
	}

	@Test
	void idleOwnerSendsNothingButItsHeartbeatAndItsPolls() {
		this.fixture.properties.setFallbackPollInterval(Duration.ofMinutes(1));
		WakeupListener wakeups = this.fixture.wakeups();
		Outage counting = new Outage(this.database);
		ListenerFixture other = new ListenerFixture(this.database, counting);
		other.properties.setFallbackPollInterval(Duration.ofMinutes(1));
		other.properties.setPollInterval(Duration.ofMinutes(1));
		var owner = other.container("idle_owner", ListenerFixture.routes((message) -> {
		}), (container) -> container.setWakeupListener(wakeups));
		owner.start();
		await().until(() -> !owner.isStandby() && wakeups.isListening("idle_owner"));
		await().during(Duration.ofMillis(300)).until(() -> true);
		int before = counting.connections.get();
		await().during(Duration.ofSeconds(1)).until(() -> true);
		assertThat(counting.connections.get() - before).as("a beat in five seconds").isLessThanOrEqualTo(1);
		owner.stop();
	}

	@Test
	void pausedOwnerKeepsItsLease() {
		this.fixture.properties.setLeaseDuration(Duration.ofMillis(600));
		List<String> handled = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("paused_owner", (message) -> handled.add("first"));
		var second = this.fixture.container("paused_owner", (message) -> handled.add("second"));
		first.start();
		await().until(() -> !first.isStandby());
		second.start();
		first.pause();
		await().until(first::isPaused);
		this.fixture.send("paused_owner", 1);
		await().during(Duration.ofSeconds(1)).until(() -> second.isStandby() && handled.isEmpty());
		first.resume();
		await().until(() -> handled.equals(List.of("first")));
	}

	@Test
	void stopWithoutADatabaseTakesNoLongerThanItsStatement(CapturedOutput output) {
		Outage outage = new Outage(this.database);
		ListenerFixture other = new ListenerFixture(this.database, outage);
		var container = other.container("gone", (message) -> {
		});
		container.start();
		await().until(() -> !container.isStandby());
		outage.begin();
		assertThat(time(container::stop)).isLessThan(Duration.ofSeconds(2));
		assertThat(container.isRunning()).isFalse();
		await().untilAsserted(() -> assertThat(output)
			.contains("could not be given up; another instance takes it over within PT15S"));
	}

	@Test
	void leaseThatCouldNotBeGivenUpIsGivenUpByTheHeartbeat() {
		Outage outage = new Outage(this.database);
		ListenerFixture other = new ListenerFixture(this.database, outage);
		InstanceHeartbeat heartbeat = new InstanceHeartbeat(this.fixture.client);
		// Another container keeps the instance alive.
		var alive = this.fixture.container("alive", ListenerFixture.routes((message) -> {
		}), (container) -> container.setInstanceHeartbeat(heartbeat));
		alive.start();
		var stopped = other.container("stopped", ListenerFixture.routes((message) -> {
		}), (container) -> container.setInstanceHeartbeat(heartbeat));
		stopped.start();
		await().until(() -> !stopped.isStandby());
		outage.begin();
		stopped.stop();
		var second = this.fixture.container("stopped", (message) -> {
		});
		second.start();
		await().atMost(Duration.ofSeconds(10)).until(() -> !second.isStandby());
		assertThat(alive.isStandby()).isFalse();
	}

	/**
	 * A way to the database that can be cut off, and counts how often it is used.
	 */
	static final class Outage extends DelegatingDataSource {

		private final AtomicInteger connections = new AtomicInteger();

		private volatile boolean going;

		Outage(TestDatabase database) {
			super(database.dataSource());
		}

		void begin() {
			this.going = true;
		}

		void end() {
			this.going = false;
		}

		@Override
		public Connection getConnection() throws SQLException {
			if (this.going) {
				throw new SQLException("There is no way", "08001");
			}
			this.connections.incrementAndGet();
			return super.getConnection();
		}

	}

}
