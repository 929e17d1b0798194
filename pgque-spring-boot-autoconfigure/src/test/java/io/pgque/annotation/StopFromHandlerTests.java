package io.pgque.annotation;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;

import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.core.PgqueMessage;
import io.pgque.listener.PgqueMessageListenerContainer;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ConfigurableApplicationContext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests for handlers that stop what they run in. Nobody waits for the handler's own end.
 */
@PgqueDatabase
@Timeout(20)
class StopFromHandlerTests {

	private static final List<String> calls = new CopyOnWriteArrayList<>();

	private static final List<Duration> durations = new CopyOnWriteArrayList<>();

	private final ListenerContext context;

	StopFromHandlerTests(TestDatabase database) {
		this.context = new ListenerContext(database);
		calls.clear();
		durations.clear();
	}

	@AfterEach
	void tearDown() {
		this.context.close();
		// What a test has left would stop the next one.
		this.context.client.unsubscribe("s1", "s");
	}

	@Test
	void handlerClosesTheApplication() {
		check("close");
		assertThat(this.context.isActive()).isFalse();
	}

	@Test
	void handlerStopsTheRegistry() {
		check("stop");
		assertThat(this.context.isActive()).isTrue();
	}

	@Test
	void batchHandlerStopsTheRegistry() {
		PgqueListenerEndpointRegistry registry = this.context.start(Stopping.class);
		this.context.send("s2", "stop", "a", "b");
		await()
			.until(() -> registry.getListenerContainers().stream().noneMatch(PgqueMessageListenerContainer::isRunning));
		assertThat(calls).containsExactly("2 messages");
		await().untilAsserted(
				() -> assertThat(registry.getListenerContainer("s2.s").getCounters().handled()).isEqualTo(2));
	}

	@ParameterizedTest
	@ValueSource(strings = { "stop", "close" })
	void handlersOfTwoContainersDoItAtTheSameTime(String type) {
		PgqueListenerEndpointRegistry registry = this.context.start(Together.class);
		this.context.send("s3", type, "first", "second");
		this.context.send("s4", type, "first", "second");
		await()
			.until(() -> registry.getListenerContainers().stream().noneMatch(PgqueMessageListenerContainer::isRunning));
		assertThat(calls).containsExactlyInAnyOrder("s3 first", "s4 first");
		assertThat(durations).hasSize(2).allSatisfy((time) -> assertThat(time).isLessThan(Duration.ofSeconds(3)));
		await().untilAsserted(() -> assertThat(registry.getListenerContainers())
			.allSatisfy((container) -> assertThat(container.getCounters().handled()).isOne()));
		this.context.client.unsubscribe("s3", "s");
		this.context.client.unsubscribe("s4", "s");
	}

	private void check(String type) {
		PgqueListenerEndpointRegistry registry = this.context.start(Stopping.class);
		PgqueMessageListenerContainer own = registry.getListenerContainer("s1.s");
		PgqueMessageListenerContainer other = registry.getListenerContainer("s2.s");
		this.context.send("s1", type, "first", "second");
		await().until(() -> !own.isRunning() && !other.isRunning());
		assertThat(calls).containsExactly(type + " first");
		assertThat(durations).singleElement().satisfies((time) -> assertThat(time).isLessThan(Duration.ofSeconds(3)));
		// What the handler did is settled nevertheless, and the next message waits.
		await().untilAsserted(() -> assertThat(own.getCounters().handled()).isOne());
		assertThat(own.getCounters().failures()).isZero();
	}

	static class Stopping {

		private final ConfigurableApplicationContext context;

		private final ObjectProvider<PgqueListenerEndpointRegistry> registry;

		Stopping(ConfigurableApplicationContext context, ObjectProvider<PgqueListenerEndpointRegistry> registry) {
			this.context = context;
			this.registry = registry;
		}

		@PgqueListener(queue = "s1", consumer = "s", types = "close")
		void close(String payload) {
			time(this.context::close);
			calls.add("close " + payload);
		}

		@PgqueListener(queue = "s1", consumer = "s", types = "stop")
		void stop(String payload) {
			time(() -> this.registry.getObject().stop());
			calls.add("stop " + payload);
		}

		@PgqueListener(queue = "s2", consumer = "s")
		void stop(List<String> payloads) {
			time(() -> this.registry.getObject().stop());
			calls.add(payloads.size() + " messages");
		}

		private static void time(Runnable action) {
			long begin = System.nanoTime();
			action.run();
			durations.add(Duration.ofNanos(System.nanoTime() - begin));
		}

	}

	static class Together {

		private final CyclicBarrier barrier = new CyclicBarrier(2);

		private final ConfigurableApplicationContext context;

		private final ObjectProvider<PgqueListenerEndpointRegistry> registry;

		Together(ConfigurableApplicationContext context, ObjectProvider<PgqueListenerEndpointRegistry> registry) {
			this.context = context;
			this.registry = registry;
		}

		@PgqueListener(queue = "s3", consumer = "s")
		void one(PgqueMessage message) throws Exception {
			stop(message);
		}

		@PgqueListener(queue = "s4", consumer = "s")
		void other(PgqueMessage message) throws Exception {
			stop(message);
		}

		private void stop(PgqueMessage message) throws Exception {
			this.barrier.await();
			Stopping
				.time("close".equals(message.type()) ? this.context::close : () -> this.registry.getObject().stop());
			calls.add(message.queue() + " " + message.payload());
		}

	}

}
