package io.pgque.listener;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.event.ConsumerLeaseAcquiredEvent;
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
 * Tests for containers that share the slots of a partitioned consumer.
 */
@PgqueDatabase
class PartitionedContainerTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	PartitionedContainerTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database, this.database.pool(8));
		this.fixture.properties.setMode(ListenerMode.PARTITIONED);
		this.fixture.properties.setPartitions(4);
		this.fixture.properties.setConcurrency(2);
		this.fixture.properties.setLeaseDuration(Duration.ofMillis(1500));
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void slotsAreSharedEvenlyAndMoveWhenInstancesComeAndGo() {
		WakeupListener wakeups = this.fixture.wakeups();
		Map<String, List<String>> byKey = new ConcurrentHashMap<>();
		List<DefaultPgqueMessageListenerContainer> containers = new ArrayList<>();
		for (int i = 0; i < 3; i++) {
			PgqueMessageListener listener = (message) -> byKey
				.computeIfAbsent(message.extra1(), (key) -> new CopyOnWriteArrayList<>())
				.add(message.payload());
			containers.add(this.fixture.container("moving", ListenerFixture.routes(listener),
					(container) -> container.setWakeupListener(wakeups)));
		}
		AtomicInteger sent = new AtomicInteger();
		containers.get(0).start();
		await().until(() -> distribution("moving").equals(List.of(4)));
		sendKeyed("moving", sent, 100);
		containers.get(1).start();
		sendKeyed("moving", sent, 100);
		await().until(() -> distribution("moving").equals(List.of(2, 2)));
		sendKeyed("moving", sent, 100);
		containers.get(2).start();
		sendKeyed("moving", sent, 100);
		await().until(() -> distribution("moving").equals(List.of(1, 1, 2)));
		sendKeyed("moving", sent, 100);
		assertThat(time(containers.get(0)::stop)).isLessThan(Duration.ofSeconds(1));
		await().until(() -> distribution("moving").equals(List.of(2, 2)));
		sendKeyed("moving", sent, 100);
		containers.get(1).stop();
		await().atMost(Duration.ofSeconds(1)).until(() -> distribution("moving").equals(List.of(4)));
		await().until(() -> this.fixture.isDrained("moving"));
		await().until(() -> byKey.values().stream().mapToInt(List::size).sum() >= sent.get());
		assertThat(byKey).hasSize(7);
		byKey.forEach((key, payloads) -> {
			List<Integer> numbers = payloads.stream().map(Integer::valueOf).toList();
			assertThat(numbers).as(key).isSorted().doesNotHaveDuplicates();
		});
		assertThat(byKey.values().stream().mapToInt(List::size).sum()).isEqualTo(sent.get());
		assertThat(containers).allSatisfy((container) -> assertThat(container.getCounters().staleSettles()).isZero());
		await().untilAsserted(() -> assertThat(this.fixture.events(ConsumerLeaseAcquiredEvent.class))
			.allSatisfy((event) -> assertThat(event.getSlot()).isBetween(0, 3)));
	}

	@Test
	void soManySlotsAreHandledAtTheSameTimeAndAllInTurn() {
		CyclicBarrier together = new CyclicBarrier(2);
		AtomicInteger atWork = new AtomicInteger();
		AtomicInteger most = new AtomicInteger();
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("turns", (message) -> {
			most.accumulateAndGet(atWork.incrementAndGet(), Math::max);
			together.await(20, TimeUnit.SECONDS);
			handled.add(message.payload());
			atWork.decrementAndGet();
		});
		container.start();
		await().until(() -> distribution("turns").equals(List.of(4)));
		for (int slot = 0; slot < 4; slot++) {
			this.fixture.client.send("turns", "type", "" + slot, new EventExtras(keyOf(slot), null, null, null));
		}
		this.fixture.tick("turns");
		await().until(() -> handled.size() == 4);
		assertThat(most).hasValue(2);
	}

	@Test
	void slotsOfADeadInstanceAreTakenOver() {
		ContainerLeaseTests.Outage outage = new ContainerLeaseTests.Outage(this.database);
		CountDownLatch mayLeave = new CountDownLatch(1);
		CountDownLatch entered = new CountDownLatch(1);
		List<String> bySecond = new CopyOnWriteArrayList<>();
		var first = this.fixture.container("dead_slots", ListenerFixture.routes((message) -> {
			entered.countDown();
			mayLeave.await();
		}), (container) -> container.setInstanceHeartbeat(new InstanceHeartbeat(new PgqueClient(outage))));
		var second = this.fixture.container("dead_slots", (message) -> bySecond.add(message.payload()));
		first.start();
		await().until(() -> distribution("dead_slots").equals(List.of(4)));
		this.fixture.client.send("dead_slots", "type", "1", new EventExtras("key", null, null, null));
		this.fixture.tick("dead_slots");
		await().until(() -> entered.getCount() == 0);
		outage.begin();
		second.start();
		await().until(() -> bySecond.equals(List.of("1")));
		outage.end();
		mayLeave.countDown();
		await().until(() -> first.getCounters().staleSettles() == 1);
		await().until(() -> distribution("dead_slots").equals(List.of(2, 2)));
		assertThat(first.getCounters().handled()).isZero();
	}

	@Test
	void lifecycleIsThatOfOneContainer() {
		var container = this.fixture.container("slot_life", (message) -> {
		});
		container.start();
		await().until(() -> distribution("slot_life").equals(List.of(4)));
		container.pause();
		await().until(container::isPaused);
		container.resume();
		await().until(() -> !container.isPaused());
		assertThat(time(container::stop)).isLessThan(Duration.ofSeconds(1));
		assertThat(container.isRunning()).isFalse();
		assertThat(distribution("slot_life")).isEmpty();
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerStartedEvent.class)).hasSize(1));
		await().untilAsserted(() -> assertThat(this.fixture.events(ListenerContainerStoppedEvent.class)).hasSize(1));
		await().until(() -> Thread.getAllStackTraces()
			.keySet()
			.stream()
			.noneMatch((thread) -> thread.getName().startsWith("pgque-slot_life")));
	}

	/**
	 * How many slots each instance holds, ascending.
	 */
	private List<Integer> distribution(String queue) {
		return this.database.values(Integer.class, "select count(*)::int from pgque.leases() where queue_name = ?"
				+ " and alive group by instance order by 1", queue);
	}

	private void sendKeyed(String queue, AtomicInteger number, int count) {
		for (int i = 0; i < count; i++) {
			int next = number.incrementAndGet();
			this.fixture.client.send(queue, "type", "" + next, new EventExtras("key " + next % 7, null, null, null));
			if (i % 10 == 0) {
				this.fixture.tick(queue);
			}
		}
		this.fixture.tick(queue);
	}

	private String keyOf(int slot) {
		for (int i = 0;; i++) {
			String key = "key " + i;
			if (this.database.value(Integer.class, "select pgque.slot_of(?, 4)", key) == slot) {
				return key;
			}
		}
	}

}
