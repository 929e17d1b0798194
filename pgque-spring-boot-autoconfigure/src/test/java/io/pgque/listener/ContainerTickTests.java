package io.pgque.listener;

import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

import io.pgque.client.EventExtras;
import io.pgque.event.ListenerContainerFailingEvent;
import io.pgque.event.ListenerContainerRecoveredEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.support.JdbcTransactionManager;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for containers that tick for themselves. Nobody else ticks here, and nobody looks
 * by itself before a test is over.
 */
@PgqueDatabase
class ContainerTickTests {

	private final TestDatabase database;

	private final List<String> handled = new CopyOnWriteArrayList<>();

	private final AtomicInteger handedBack = new AtomicInteger();

	private ListenerFixture fixture;

	private WakeupListener wakeups;

	ContainerTickTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database);
		this.fixture.properties.setPollInterval(Duration.ofHours(1));
		this.fixture.properties.setFallbackPollInterval(Duration.ofHours(1));
		this.wakeups = this.fixture.wakeups();
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void waitingContainerTicksAndReceives() {
		start("alone", (message) -> this.handled.add(message.payload()));
		for (int i = 1; i <= 3; i++) {
			send("alone", "message " + i);
			int count = i;
			await().until(() -> this.handled.size() == count);
		}
		assertThat(this.handled).containsExactly("message 1", "message 2", "message 3");
		assertThat(this.handedBack).hasValue(0);
	}

	@Test
	void othersOfTheQueueAreWoken() {
		start("shared", (message) -> this.handled.add("first"));
		this.fixture.admin.subscribe("shared", "other");
		List<Long> told = new CopyOnWriteArrayList<>();
		this.wakeups.register("shared", (subject) -> {
			if (WakeupListener.Wakeup.TICK.equals(subject)) {
				told.add(lastTick("shared"));
			}
		});
		send("shared", "x");
		await().until(() -> told.contains(lastTick("shared")));
		await().until(() -> this.handled.equals(List.of("first")));
	}

	@Test
	void busyContainerTakesNoTick() throws Exception {
		CountDownLatch handling = new CountDownLatch(1);
		CountDownLatch go = new CountDownLatch(1);
		start("busy", (message) -> {
			if ("x".equals(message.payload())) {
				handling.countDown();
				go.await();
			}
		});
		send("busy", "x");
		handling.await();
		this.fixture.client.send("busy", "t", "y", EventExtras.NONE);
		assertThat(offer("busy")).isFalse();
		go.countDown();
	}

	@Test
	void tickThatSomebodyElseIsAboutToTakeIsHandedBack() throws Exception {
		start("contended", (message) -> this.handled.add(message.payload()));
		try (Connection other = this.database.connect(); Statement statement = other.createStatement()) {
			other.setAutoCommit(false);
			this.fixture.client.send("contended", "t", "first", EventExtras.NONE);
			statement.execute("select * from pgque.tick_now(array['contended'])");
			send("contended", "second");
			await().until(() -> this.handedBack.get() == 1);
			other.commit();
		}
		this.fixture.tick("contended");
		await().until(() -> this.handled.equals(List.of("first", "second")));
	}

	@Test
	void tickIsHandedBackWhenReceivingFails() {
		start("failing", (message) -> this.handled.add(message.payload()));
		this.database.execute("alter function pgque.tick_and_receive_leased rename to gone");
		try {
			send("failing", "x");
			await().until(() -> this.handedBack.get() == 1);
		}
		finally {
			this.database.execute("alter function pgque.gone rename to tick_and_receive_leased");
		}
		this.fixture.tick("failing");
		await().until(() -> this.handled.equals(List.of("x")));
	}

	@Test
	void batchIsSettledAloneWhenReceivingWithItFails() {
		start("apart", (message) -> this.handled.add(message.payload()));
		this.database.execute("alter function pgque.settle_and_receive_leased rename to gone");
		try {
			send("apart", "x");
			await().until(() -> this.handled.equals(List.of("x")));
			send("apart", "y");
			await().until(() -> this.handled.equals(List.of("x", "y")));
			await().until(() -> this.database.jdbc()
				.queryForObject(
						"select count(*) from pgque.subscription s join pgque.queue q on q.queue_id = s.sub_queue"
								+ " where q.queue_name = 'apart' and s.sub_batch is null",
						Integer.class) == 1);
		}
		finally {
			this.database.execute("alter function pgque.gone rename to settle_and_receive_leased");
		}
	}

	@Test
	void tickIsNotPartOfTheHandlersTransaction() {
		this.fixture.properties.setTransactional(true);
		start("transactional", (message) -> this.handled.add(message.payload()));
		this.fixture.client.send("transactional", "t", "x", EventExtras.NONE);
		assertThat(offer("transactional")).isFalse();
		this.fixture.tick("transactional");
		await().until(() -> this.handled.equals(List.of("x")));
	}

	/**
	 * To look for messages works nevertheless: when there are none it writes nothing, so
	 * it would work on a read-only server too.
	 */
	@Test
	void isFailingWhileItCanNotTick() {
		lookOften();
		start("refused", (message) -> this.handled.add(message.payload()));
		this.database.execute("alter function pgque.tick_and_receive_leased rename to gone");
		try {
			send("refused", "x");
			await().until(() -> this.handedBack.get() == 1);
			await().during(Duration.ofSeconds(2))
				.until(() -> this.fixture.events(ListenerContainerRecoveredEvent.class).isEmpty());
			assertThat(this.fixture.events(ListenerContainerFailingEvent.class)).hasSize(1);
		}
		finally {
			this.database.execute("alter function pgque.gone rename to tick_and_receive_leased");
		}
		await().until(() -> this.handled.equals(List.of("x")));
		await().until(() -> this.fixture.events(ListenerContainerRecoveredEvent.class).size() == 1);
		assertThat(this.fixture.events(ListenerContainerFailingEvent.class)).hasSize(1);
		assertThat(this.handedBack).hasValue(1);
	}

	private void lookOften() {
		this.fixture.properties.setPollInterval(Duration.ofMillis(50));
		this.fixture.properties.setFallbackPollInterval(Duration.ofMillis(50));
	}

	@Test
	void receivesWhatOthersTickWhileItCanNot() {
		lookOften();
		start("others", (message) -> this.handled.add(message.payload()));
		this.database.execute("alter function pgque.tick_and_receive_leased rename to gone");
		try {
			send("others", "x");
			await().until(() -> this.handedBack.get() == 1);
			this.fixture.tick("others");
			await().until(() -> this.handled.equals(List.of("x")));
			await().until(() -> this.fixture.events(ListenerContainerRecoveredEvent.class).size() == 1);
			this.fixture.send("others", "t", "y");
			await().until(() -> this.handled.equals(List.of("x", "y")));
			assertThat(this.fixture.events(ListenerContainerFailingEvent.class)).hasSize(1);
		}
		finally {
			this.database.execute("alter function pgque.gone rename to tick_and_receive_leased");
		}
	}

	private void start(String queue, PgqueMessageListener listener) {
		DefaultPgqueMessageListenerContainer container = this.fixture.container(queue, ListenerFixture.routes(listener),
				(created) -> {
					created.setWakeupListener(this.wakeups);
					created.setTransactionManager(new JdbcTransactionManager(this.fixture.pool));
				});
		container.start();
		await().until(() -> !container.isStandby() && this.wakeups.isListening(queue));
		// It has looked for what came before, and waits.
		this.fixture.send(queue, "first", "look");
		await().until(() -> this.fixture.isDrained(queue));
		this.handled.clear();
	}

	private void send(String queue, String payload) {
		this.fixture.client.send(queue, "t", payload, EventExtras.NONE);
		await().until(() -> offer(queue));
	}

	private boolean offer(String queue) {
		return this.wakeups.offerTick(queue, this.handedBack::incrementAndGet);
	}

	private long lastTick(String queue) {
		return this.database.value(Long.class, "select last_tick_id from pgque.get_queue_info(?)", queue);
	}

}
