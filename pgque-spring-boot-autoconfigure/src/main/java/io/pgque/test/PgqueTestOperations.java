package io.pgque.test;

import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;

import io.pgque.client.PgqueClient;
import io.pgque.client.TestingClient;
import io.pgque.client.TickResult;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.core.DeadLetter;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.core.PgqueOperations;
import io.pgque.core.SendSpec;
import io.pgque.listener.DefaultPgqueMessageListenerContainer;
import io.pgque.listener.ListenerCounters;
import io.pgque.listener.PgqueMessageListenerContainer;

import org.springframework.transaction.support.TransactionOperations;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.Assert;

/**
 * Does at a test's command what threads do in an application: takes ticks, calls handlers
 * and brings retries back. Handlers run on the thread of the test, so that a test has
 * nothing to wait for.
 *
 * <p>
 * For {@code pgque.ticker.mode=off} and {@code pgque.listener.auto-startup=false}.
 * Nothing of it works in a transaction that a test has around it: what is sent there is
 * not visible to anybody before it commits, and such transactions don't.
 *
 * @since 0.1.0
 */
public final class PgqueTestOperations {

	private static final int MAX_DEAD_LETTERS = 10_000;

	private static final int MAX_ROUNDS = 1000;

	private static final int TICK_ATTEMPTS = 100;

	private final PgqueClient client;

	private final TestingClient testing;

	private final PgqueOperations operations;

	private final PgqueAdminOperations admin;

	private final PgqueListenerEndpointRegistry registry;

	private final TransactionOperations transactions;

	/**
	 * Create operations.
	 * @param client ticks
	 * @param testing hastens retries
	 * @param operations sends
	 * @param admin lists dead letters
	 * @param registry knows the listeners
	 * @param transactions makes a new transaction for each message that is sent
	 */
	public PgqueTestOperations(PgqueClient client, TestingClient testing, PgqueOperations operations,
			PgqueAdminOperations admin, PgqueListenerEndpointRegistry registry, TransactionOperations transactions) {
		this.client = client;
		this.testing = testing;
		this.operations = operations;
		this.admin = admin;
		this.registry = registry;
		this.transactions = transactions;
	}

	/**
	 * Send a message in a transaction of its own, which has committed when this returns.
	 * @param queue the queue
	 * @param payload the payload
	 * @return the message id
	 */
	public long send(String queue, Object payload) {
		return committed(() -> this.operations.send(queue, payload));
	}

	/**
	 * Send a message in a transaction of its own, which has committed when this returns.
	 * @param queue the queue
	 * @param type the event type
	 * @param payload the payload
	 * @return the message id
	 */
	public long send(String queue, String type, Object payload) {
		return committed(() -> this.operations.send(queue, type, payload));
	}

	/**
	 * Send a message in a transaction of its own, which has committed when this returns.
	 * @param queue the queue
	 * @param spec says what the message is made of
	 * @return the message id
	 */
	public long send(String queue, Consumer<SendSpec> spec) {
		return committed(() -> this.operations.send(queue, spec));
	}

	private long committed(Supplier<Long> sending) {
		Long id = this.transactions.execute((status) -> sending.get());
		Assert.state(id != null, "Sending gave no message id");
		return id;
	}

	/**
	 * Make what was committed visible to the consumers of a queue.
	 * @param queue the queue
	 * @return whether there was anything new
	 * @throws IllegalStateException when the tick failed, or others keep the queue busy
	 */
	public boolean tick(String queue) {
		requireNoTransaction();
		for (int attempt = 0; attempt < TICK_ATTEMPTS; attempt++) {
			List<TickResult> results = this.client.tick(List.of(queue));
			if (results.isEmpty()) {
				return false;
			}
			TickResult result = results.get(0);
			switch (result.outcome()) {
				case TICKED -> {
					return true;
				}
				case FAILED ->
					throw new IllegalStateException("The tick of queue '" + queue + "' failed: " + result.detail());
				default -> Thread.onSpinWait();
			}
		}
		throw new IllegalStateException("Queue '" + queue + "' is always being ticked by somebody else");
	}

	/**
	 * Let a listener handle everything that is there for it, and what its handlers send
	 * to its own queue meanwhile. Failed messages are retried or become dead letters as
	 * ever; those that are retried wait for {@link #retriesDue}.
	 * @param listenerId the id of the listener; {@code queue.consumer} where none was
	 * given
	 * @return what came of the messages
	 * @throws IllegalStateException when the container is running
	 */
	public DrainResult drain(String listenerId) {
		PgqueMessageListenerContainer container = this.registry.getListenerContainer(listenerId);
		Assert.isTrue(container != null, () -> "There is no listener '" + listenerId + "'; there are "
				+ this.registry.getListenerContainerIds());
		DrainResult total = DrainResult.NOTHING;
		for (int round = 0; round < MAX_ROUNDS; round++) {
			tick(container.getQueue());
			DrainResult result = drain(container);
			if (result.total() == 0) {
				return total;
			}
			total = total.plus(result);
		}
		throw new IllegalStateException("Listener '" + listenerId + "' finds no end: its handlers keep sending");
	}

	/**
	 * Let all listeners handle everything that is there for them, and what their handlers
	 * send to each other meanwhile.
	 * @return what came of the messages
	 * @throws IllegalStateException when a container is running
	 */
	public DrainResult drainAll() {
		DrainResult total = DrainResult.NOTHING;
		for (int round = 0; round < MAX_ROUNDS; round++) {
			DrainResult result = DrainResult.NOTHING;
			for (String id : this.registry.getListenerContainerIds()) {
				result = result.plus(drain(id));
			}
			if (result.total() == 0) {
				return total;
			}
			total = total.plus(result);
		}
		throw new IllegalStateException("The listeners find no end: their handlers keep sending");
	}

	private static DrainResult drain(PgqueMessageListenerContainer container) {
		Assert.isInstanceOf(DefaultPgqueMessageListenerContainer.class, container);
		ListenerCounters before = container.getCounters();
		((DefaultPgqueMessageListenerContainer) container).drain();
		return DrainResult.between(before, container.getCounters());
	}

	/**
	 * Bring all waiting retries of a queue back at once, whatever their delay. Drain
	 * afterwards.
	 * @param queue the queue
	 * @return how many there were
	 */
	public int retriesDue(String queue) {
		requireNoTransaction();
		int waiting = this.testing.hastenRetries(queue);
		this.client.moveDueRetries();
		tick(queue);
		return waiting;
	}

	/**
	 * List the dead letters of a queue, newest first.
	 * @param queue the queue
	 * @return the dead letters
	 */
	public List<DeadLetter> deadLetters(String queue) {
		return this.admin.deadLetters().inspect(queue, MAX_DEAD_LETTERS);
	}

	private static void requireNoTransaction() {
		Assert.state(!TransactionSynchronizationManager.isActualTransactionActive(),
				"There is a transaction around this test: what is sent in it stays invisible, and what is handled "
						+ "would be rolled back. Take @Transactional away, or set its propagation to NOT_SUPPORTED");
	}

}
