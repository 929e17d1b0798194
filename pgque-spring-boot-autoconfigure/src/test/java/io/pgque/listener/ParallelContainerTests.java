package io.pgque.listener;

import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.EventExtras;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import static io.pgque.listener.ContainerDeliveryTests.time;
import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for handlers of one batch that run at the same time.
 */
@PgqueDatabase
class ParallelContainerTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	ParallelContainerTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database);
		this.fixture.properties.setConcurrency(4);
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@Test
	void soManyHandlersRunAtTheSameTime() {
		CyclicBarrier together = new CyclicBarrier(4);
		AtomicInteger atWork = new AtomicInteger();
		AtomicInteger most = new AtomicInteger();
		List<Long> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("parallel", (message) -> {
			most.accumulateAndGet(atWork.incrementAndGet(), Math::max);
			together.await(20, TimeUnit.SECONDS);
			handled.add(message.id());
			atWork.decrementAndGet();
		});
		List<Long> sent = this.fixture.send("parallel", 40);
		container.start();
		await().until(() -> this.fixture.isDrained("parallel"));
		assertThat(handled).containsExactlyInAnyOrderElementsOf(sent);
		assertThat(most).hasValue(4);
		await().untilAsserted(() -> assertThat(container.getCounters().batchesSettled()).isOne());
		await().untilAsserted(() -> assertThat(container.getCounters().handled()).isEqualTo(40));
	}

	@Test
	void messagesOfAKeyComeOneAfterTheOtherAlsoOverPages() {
		this.fixture.properties.setPageSize(50);
		Map<String, List<Integer>> byKey = new ConcurrentHashMap<>();
		Set<String> atWork = ConcurrentHashMap.newKeySet();
		AtomicBoolean overlapped = new AtomicBoolean();
		var container = this.fixture.container("keys", (message) -> {
			String key = message.extra1();
			overlapped.compareAndSet(false, !atWork.add(key));
			Thread.yield();
			byKey.computeIfAbsent(key, (any) -> new CopyOnWriteArrayList<>()).add(Integer.valueOf(message.payload()));
			atWork.remove(key);
		});
		for (int i = 0; i < 400; i++) {
			this.fixture.client.send("keys", "type", "" + i, new EventExtras("key " + i % 6, null, null, null));
		}
		this.fixture.tick("keys");
		container.start();
		await().until(() -> this.fixture.isDrained("keys"));
		assertThat(overlapped).isFalse();
		assertThat(byKey).hasSize(6);
		byKey.forEach((key, numbers) -> assertThat(numbers).as(key).isSorted().doesNotHaveDuplicates());
		assertThat(byKey.values().stream().mapToInt(List::size).sum()).isEqualTo(400);
	}

	@Test
	void failuresAreSettledWithTheBatch() {
		this.fixture.errorHandler = (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		List<String> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("parallel_failures", (message) -> {
			if (message.id() % 5 == 0) {
				throw new IllegalStateException("no");
			}
			handled.add(message.payload());
		});
		this.fixture.send("parallel_failures", 50);
		container.start();
		await().until(() -> container.getCounters().batchesSettled() == 1);
		assertThat(handled).hasSize(40);
		assertThat(this.fixture.pendingRetries("parallel_failures")).isEqualTo(10);
		await().untilAsserted(() -> assertThat(container.getCounters().retried()).isEqualTo(10));
	}

	@Test
	void stopSettlesWhatIsDoneAndTheRestComesAgain() throws Exception {
		CountDownLatch entered = new CountDownLatch(4);
		CountDownLatch mayLeave = new CountDownLatch(1);
		List<Long> handled = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("parallel_stop", (message) -> {
			entered.countDown();
			mayLeave.await();
			handled.add(message.id());
		});
		List<Long> sent = this.fixture.send("parallel_stop", 100);
		container.start();
		entered.await();
		CountDownLatch stopped = new CountDownLatch(1);
		container.stop(stopped::countDown);
		await().until(() -> Thread.getAllStackTraces()
			.keySet()
			.stream()
			.anyMatch((thread) -> thread.getName().equals("pgque-stop-parallel_stop.consumer")));
		mayLeave.countDown();
		stopped.await();
		container.start();
		await().until(() -> this.fixture.isDrained("parallel_stop"));
		assertThat(handled).containsExactlyInAnyOrderElementsOf(sent);
		assertThat(container.getCounters().staleSettles()).isZero();
	}

	@Test
	void handlersBeyondTheShutdownTimeoutAreInterruptedAndThatIsNoFailure() throws Exception {
		this.fixture.properties.setShutdownTimeout(Duration.ofMillis(300));
		CountDownLatch entered = new CountDownLatch(4);
		AtomicInteger interrupted = new AtomicInteger();
		AtomicBoolean hang = new AtomicBoolean(true);
		List<Integer> attempts = new CopyOnWriteArrayList<>();
		var container = this.fixture.container("parallel_hang", (message) -> {
			attempts.add(message.deliveryAttempt());
			entered.countDown();
			if (hang.get()) {
				try {
					new CountDownLatch(1).await();
				}
				catch (InterruptedException ex) {
					interrupted.incrementAndGet();
					throw ex;
				}
			}
		});
		this.fixture.send("parallel_hang", 10);
		container.start();
		entered.await();
		assertThat(time(container::stop)).isBetween(Duration.ofMillis(300), Duration.ofSeconds(2));
		assertThat(interrupted).hasValue(4);
		assertThat(container.isRunning()).isFalse();
		hang.set(false);
		container.start();
		await().until(() -> this.fixture.isDrained("parallel_hang"));
		assertThat(attempts).hasSize(14).containsOnly(1);
		assertThat(this.fixture.pendingRetries("parallel_hang")).isZero();
	}

	@Test
	void smallPoolIsNotStarvedAndNoConnectionIsHeldWhileHandlersRun() throws Exception {
		HikariDataSource pool = this.database.pool(2);
		pool.setConnectionTimeout(5000);
		try (ListenerFixture small = new ListenerFixture(this.database, pool)) {
			small.properties.setConcurrency(8);
			CyclicBarrier together = new CyclicBarrier(8);
			AtomicInteger active = new AtomicInteger(-1);
			List<Long> handled = new CopyOnWriteArrayList<>();
			var container = small.container("small_pool", ListenerFixture.routes((message) -> {
				if (together.await(20, TimeUnit.SECONDS) == 0) {
					active.set(this.database.value(Integer.class,
							"select count(*)::int from pg_stat_activity"
									+ " where datname = current_database() and state like 'idle in transaction%'")
							+ pool.getHikariPoolMXBean().getActiveConnections());
				}
				together.await(20, TimeUnit.SECONDS);
				try (Connection connection = pool.getConnection()) {
					assertThat(connection.isValid(1)).isTrue();
				}
				handled.add(message.id());
			}), (created) -> created
				.setInstanceHeartbeat(new InstanceHeartbeat(small.client, this.database.dataSource())));
			List<Long> sent = small.send("small_pool", 32);
			container.start();
			// Not through the pool that is observed.
			await().until(() -> this.fixture.isDrained("small_pool"));
			assertThat(handled).containsExactlyInAnyOrderElementsOf(sent);
			assertThat(active).hasValue(0);
		}
	}

	@Test
	void listsAndOwnAcknowledgmentsAreRefused() {
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> this.fixture.batchContainer("lists", (batch) -> {
			}))
			.withMessageContaining("takes several messages at a time, which does not go together with mode 'exclusive'")
			.withMessageContaining("Set concurrency to 1");
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> this.fixture.manualContainer("manual", (message, acknowledgment) -> {
			}))
			.withMessageContaining("acknowledges by itself");
	}

	@Test
	void memoryIsThatOfAPage() {
		this.fixture.properties.setPageSize(10);
		List<Long> ids = new ArrayList<>();
		List<Long> handled = new CopyOnWriteArrayList<>();
		AtomicInteger ahead = new AtomicInteger();
		var container = this.fixture.container("page_by_page", (message) -> {
			handled.add(message.id());
			ahead.accumulateAndGet((int) (message.id() - ids.get(0)) - handled.size(), Math::max);
		});
		ids.addAll(this.fixture.send("page_by_page", 500));
		container.start();
		await().until(() -> this.fixture.isDrained("page_by_page"));
		assertThat(handled).containsExactlyInAnyOrderElementsOf(ids);
		assertThat(ahead.get()).isLessThanOrEqualTo(10);
	}

}
