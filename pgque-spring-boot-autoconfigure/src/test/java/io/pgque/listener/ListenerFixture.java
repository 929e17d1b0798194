package io.pgque.listener;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

import javax.sql.DataSource;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueAdmin;
import io.pgque.event.PgqueApplicationEvent;
import io.pgque.testsupport.TestDatabase;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionFactory;

import org.springframework.context.ApplicationEventPublisher;

/**
 * Containers on a real database, and what tests do to their queue. There is no ticker:
 * messages become visible when the test says so.
 */
class ListenerFixture implements AutoCloseable {

	static final String CONSUMER = "consumer";

	final TestDatabase database;

	final DataSource pool;

	final PgqueClient client;

	final PgqueAdmin admin;

	final PgqueContainerProperties properties = new PgqueContainerProperties();

	final List<PgqueApplicationEvent> events = new CopyOnWriteArrayList<>();

	final ApplicationEventPublisher publisher = (event) -> this.events.add((PgqueApplicationEvent) event);

	PgqueErrorHandler errorHandler = new DefaultPgqueErrorHandler(
			new BackOffSettings(Duration.ofMillis(1), 1, Duration.ofSeconds(1), Duration.ZERO));

	private final List<AutoCloseable> closeables = new ArrayList<>();

	ListenerFixture(TestDatabase database) {
		this(database, database.pool(4));
	}

	ListenerFixture(TestDatabase database, DataSource pool) {
		this.database = database;
		this.pool = pool;
		this.client = new PgqueClient(pool);
		this.admin = new PgqueAdmin(pool, List.of());
		this.properties.setPollInterval(Duration.ofMillis(50));
		this.properties.setFallbackPollInterval(Duration.ofMillis(50));
	}

	static ConditionFactory await() {
		return Awaitility.await().atMost(Duration.ofSeconds(20)).pollInterval(Duration.ofMillis(10));
	}

	/**
	 * Return routes that lead everything to one listener.
	 */
	static EventRoutes routes(PgqueMessageListener listener) {
		return rest(listener);
	}

	private static EventRoutes rest(GenericPgqueListener listener) {
		return EventRoutes.of(List.of(new EventRoutes.Route("test", EventRoutes.Route.Kind.REST, Set.of(), listener)));
	}

	DefaultPgqueMessageListenerContainer batchContainer(String queue, PgqueBatchListener listener) {
		return container(queue, rest(listener), (container) -> {
		});
	}

	DefaultPgqueMessageListenerContainer manualContainer(String queue, PgqueAcknowledgingMessageListener listener) {
		this.properties.setAckMode(AckMode.MANUAL);
		return container(queue, rest(listener), (container) -> {
		});
	}

	DefaultPgqueMessageListenerContainer container(String queue, PgqueMessageListener listener) {
		return container(queue, routes(listener), (container) -> {
		});
	}

	/**
	 * Create a container and subscribe its consumer.
	 */
	DefaultPgqueMessageListenerContainer container(String queue, EventRoutes routes,
			Consumer<DefaultPgqueMessageListenerContainer> customizer) {
		DefaultPgqueMessageListenerContainer container = new DefaultPgqueMessageListenerContainer(
				new ListenerIdentity(queue + "." + CONSUMER, queue, CONSUMER), this.client, this.admin, routes,
				this.errorHandler, this.properties);
		container.setApplicationEventPublisher(this.publisher);
		customizer.accept(container);
		container.subscribe();
		this.closeables.add(0, container::stop);
		return container;
	}

	/**
	 * Create what wakes containers, on connections of its own.
	 */
	WakeupListener wakeups() {
		WakeupListener wakeups = new WakeupListener(this.database.dataSource());
		this.closeables.add(wakeups::destroy);
		return wakeups;
	}

	/**
	 * Send messages with their numbers as payload.
	 * @return their ids
	 */
	List<Long> send(String queue, int count) {
		List<String> payloads = new ArrayList<>();
		for (int i = 1; i <= count; i++) {
			payloads.add(Integer.toString(i));
		}
		List<Long> ids = this.client.sendBatch(queue, "number", payloads);
		tick(queue);
		return ids;
	}

	long send(String queue, String type, String payload) {
		long id = this.client.send(queue, type, payload, EventExtras.NONE);
		tick(queue);
		return id;
	}

	void tick(String queue) {
		this.client.tick(List.of(queue));
	}

	/**
	 * Bring pending retries back, whatever their delay.
	 */
	void retryNow(String queue) {
		this.database.update("update pgque.retry_queue set ev_retry_after = now() - interval '1 second'");
		this.client.moveDueRetries();
		tick(queue);
	}

	int pendingRetries(String queue) {
		return this.database.value(Integer.class,
				"select count(*)::int from pgque.retry_queue r join pgque.queue q on q.queue_id = r.ev_queue"
						+ " where q.queue_name = ?",
				queue);
	}

	int deadLetters(String queue) {
		return this.client.deadLetters(queue, 10_000).size();
	}

	/**
	 * Whether the consumer has nothing left to do.
	 */
	boolean isDrained(String queue) {
		return this.client.consumers()
			.stream()
			.filter((consumer) -> consumer.queue().equals(queue))
			.allMatch((consumer) -> consumer.currentBatchId() == null
					// Members of a group stand nowhere.
					&& (consumer.pendingEvents() == null || consumer.pendingEvents() == 0));
	}

	<E> List<E> events(Class<E> type) {
		return this.events.stream().filter(type::isInstance).map(type::cast).toList();
	}

	@Override
	public void close() throws Exception {
		for (AutoCloseable closeable : this.closeables) {
			closeable.close();
		}
	}

}
