package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;

import io.pgque.client.ConsumerMode.Kind;
import io.pgque.client.PgqueClient;
import io.pgque.event.ListenerContainerPausedEvent;
import io.pgque.event.ListenerContainerResumedEvent;
import io.pgque.event.ListenerContainerStartedEvent;
import io.pgque.event.ListenerContainerStoppedEvent;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for containers whose workers, in all instances, share the batches of a consumer.
 */
@PgqueDatabase
class CooperativeContainerTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	CooperativeContainerTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database, this.database.pool(8));
		this.fixture.properties.setMode(ListenerMode.COOPERATIVE);
		this.fixture.properties.setConcurrency(2);
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void workersOfAllInstancesHandleAtTheSameTime() {
		this.fixture.properties.setPageSize(1);
		CyclicBarrier together = new CyclicBarrier(4);
		List<Long> handled = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("coop", (message) -> {
			together.await(20, TimeUnit.SECONDS);
			handled.add(message.id());
		});
		var second = this.fixture.container("coop", (message) -> {
			together.await(20, TimeUnit.SECONDS);
			handled.add(message.id());
		});
		first.start();
		second.start();
		await().until(() -> members("coop") == 4);
		for (int i = 0; i < 4; i++) {
			this.fixture.send("coop", "type", "" + i);
		}
		await().until(() -> handled.size() == 4);
		await().until(() -> first.getCounters().handled() + second.getCounters().handled() == 4);
		assertThat(handled).doesNotHaveDuplicates();
		assertThat(first.isStandby() || second.isStandby()).isFalse();
	}

	@Test
	void everythingIsHandledOnce() {
		this.fixture.properties.setPageSize(10);
		Set<String> threads = ConcurrentHashMap.newKeySet();
		List<Long> handled = new CopyOnWriteArrayList<>();
		PgqueMessageListener listener = (message) -> {
			threads.add(Thread.currentThread().getName());
			handled.add(message.id());
		};
		var first = this.fixture.container("coop_once", listener);
		var second = this.fixture.container("coop_once", listener);
		first.start();
		second.start();
		List<Long> sent = new CopyOnWriteArrayList<>();
		for (int i = 0; i < 50; i++) {
			sent.addAll(this.fixture.send("coop_once", 10));
		}
		await().until(() -> handled.size() >= 500);
		await().until(() -> this.fixture.isDrained("coop_once"));
		assertThat(handled).containsExactlyInAnyOrderElementsOf(sent);
		assertThat(threads).isSubsetOf("pgque-coop_once.consumer-1", "pgque-coop_once.consumer-2");
	}

	@Test
	void stopHandsTheRestOfTheBatchToTheOthersAtOnce() throws Exception {
		this.fixture.properties.setConcurrency(1);
		this.fixture.properties.setDeadInterval(Duration.ofHours(1));
		CountDownLatch inTheMiddle = new CountDownLatch(1);
		CountDownLatch mayLeave = new CountDownLatch(1);
		List<String> handled = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("coop_stop", (message) -> {
			handled.add(message.payload());
			if (message.payload().equals("2")) {
				inTheMiddle.countDown();
				mayLeave.await();
			}
		});
		var second = this.fixture.container("coop_stop", (message) -> {
			handled.add(message.payload());
			assertThat(message.deliveryAttempt()).isOne();
		});
		this.fixture.send("coop_stop", 5);
		first.start();
		inTheMiddle.await();
		second.start();
		await().until(() -> members("coop_stop") == 2);
		CountDownLatch stopped = new CountDownLatch(1);
		first.stop(stopped::countDown);
		await().until(() -> Thread.getAllStackTraces()
			.keySet()
			.stream()
			.anyMatch((thread) -> thread.getName().equals("pgque-stop-coop_stop.consumer")));
		mayLeave.countDown();
		stopped.await();
		await().atMost(Duration.ofSeconds(5)).until(() -> handled.size() >= 5);
		await().until(() -> this.fixture.isDrained("coop_stop"));
		assertThat(handled).containsExactly("1", "2", "3", "4", "5");
		assertThat(this.fixture.pendingRetries("coop_stop")).isZero();
		await().until(() -> members("coop_stop") == 1);
	}

	@Test
	void batchOfASilentWorkerIsTakenOverAndOfASlowOneIsNot() {
		this.fixture.properties.setConcurrency(1);
		this.fixture.properties.setDeadInterval(Duration.ofSeconds(1));
		ContainerLeaseTests.Outage outage = new ContainerLeaseTests.Outage(this.database);
		CountDownLatch mayLeave = new CountDownLatch(1);
		List<String> byFirst = new CopyOnWriteArrayList<>();
		List<String> bySecond = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("coop_silent", ListenerFixture.routes((message) -> {
			byFirst.add(message.payload());
			mayLeave.await();
		}), (container) -> container.setInstanceHeartbeat(new InstanceHeartbeat(new PgqueClient(outage))));
		var second = this.fixture.container("coop_silent", (message) -> bySecond.add(message.payload()));
		this.fixture.send("coop_silent", 2);
		first.start();
		await().until(() -> byFirst.size() == 1);
		second.start();
		await().during(Duration.ofSeconds(2)).until(bySecond::isEmpty);
		outage.begin();
		await().until(() -> bySecond.equals(List.of("1", "2")));
		await().until(() -> this.fixture.isDrained("coop_silent"));
		outage.end();
		mayLeave.countDown();
		await().until(() -> first.getCounters().staleSettles() == 1);
		assertThat(byFirst).containsExactly("1");
		first.stop();
		second.stop();
		assertThat(members("coop_silent")).isZero();
	}

	@Test
	void lifecycleIsThatOfOneContainer() {
		var container = this.fixture.container("coop_life", (message) -> {
		});
		container.start();
		await().until(() -> members("coop_life") == 2);
		container.pause();
		await().until(container::isPaused);
		container.resume();
		await().until(() -> !container.isPaused());
		assertThat(time(container::stop)).isLessThan(Duration.ofSeconds(1));
		assertThat(container.isRunning()).isFalse();
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerStartedEvent.class)).hasSize(1));
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerPausedEvent.class)).hasSize(1));
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerResumedEvent.class)).hasSize(1));
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerStoppedEvent.class)).hasSize(1));
		assertThat(members("coop_life")).isZero();
		assertThat(this.fixture.client.sharing().consumerMode("coop_life", ListenerFixture.CONSUMER).kind())
			.isEqualTo(Kind.NORMAL);
	}

	private int members(String queue) {
		return this.database.value(Integer.class, "select count(*)::int from pgque.subscription s"
				+ " join pgque.queue q on q.queue_id = s.sub_queue where q.queue_name = ? and s.sub_role = 'coop_member'",
				queue);
	}

}
