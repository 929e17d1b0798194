package io.pgque.listener;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import io.pgque.client.EventExtras;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Twelve instances start at the same instant, and neither their queue nor their consumer
 * exists.
 */
@PgqueDatabase
class CrowdedStartTests {

	private static final int INSTANCES = 12;

	private static final int MESSAGES = 600;

	private final TestDatabase database;

	private final List<ListenerFixture> instances = new ArrayList<>();

	CrowdedStartTests(TestDatabase database) {
		this.database = database;
	}

	@ParameterizedTest
	@EnumSource
	void allOfThemStartAndShareTheConsumer(ListenerMode mode) throws Exception {
		String queue = "crowd_" + mode.name().toLowerCase(Locale.ROOT);
		ConcurrentHashMap<Long, AtomicInteger> handled = new ConcurrentHashMap<>();
		IntStream.range(0, INSTANCES).forEach((i) -> this.instances.add(instance(mode)));
		ExecutorService executor = Executors.newFixedThreadPool(INSTANCES);
		try {
			CyclicBarrier start = new CyclicBarrier(INSTANCES);
			List<Future<DefaultPgqueMessageListenerContainer>> starts = new ArrayList<>();
			for (ListenerFixture instance : this.instances) {
				starts.add(executor.submit(() -> {
					start.await();
					var container = instance.container(queue,
							(message) -> handled.computeIfAbsent(message.id(), (id) -> new AtomicInteger())
								.incrementAndGet());
					container.start();
					return container;
				}));
			}
			for (Future<DefaultPgqueMessageListenerContainer> started : starts) {
				assertThat(started.get(30, TimeUnit.SECONDS).isRunning()).isTrue();
			}
			ListenerFixture any = this.instances.get(0);
			for (int i = 0; i < MESSAGES; i++) {
				any.client.send(queue, "t", "" + i, new EventExtras("key " + i % 50, null, null, null));
				if (i % 50 == 49) {
					any.tick(queue);
				}
			}
			await().until(() -> handled.size() == MESSAGES && any.isDrained(queue));
			assertThat(handled.values()).extracting(AtomicInteger::get).containsOnly(1);
			for (Future<DefaultPgqueMessageListenerContainer> started : starts) {
				assertThat(started.get().getCounters().failures()).isZero();
			}
		}
		finally {
			executor.shutdownNow();
			for (ListenerFixture instance : this.instances) {
				instance.close();
			}
		}
		assertThat(
				this.database.value(Integer.class, "select count(*)::int from pgque.queue where queue_name = ?", queue))
			.isOne();
	}

	private ListenerFixture instance(ListenerMode mode) {
		ListenerFixture instance = new ListenerFixture(this.database, this.database.pool(2));
		instance.properties.setMode(mode);
		instance.properties.setPartitions(24);
		instance.properties.setConcurrency((mode != ListenerMode.PARTITIONED) ? 1 : 24);
		return instance;
	}

}
