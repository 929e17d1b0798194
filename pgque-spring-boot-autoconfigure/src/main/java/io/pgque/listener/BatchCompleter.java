package io.pgque.listener;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import io.pgque.client.Nack;
import io.pgque.client.PgqueClient;
import io.pgque.client.SettleResult;
import io.pgque.core.PgqueMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Collects the outcomes of one batch, in any order, and settles them in one statement:
 * the failed messages together with the batch, or with its first part, which ends before
 * the first message without an outcome.
 */
final class BatchCompleter {

	private static final Log logger = LogFactory.getLog(BatchCompleter.class);

	/**
	 * Beyond this a delay means never, and the database's clock ends.
	 */
	private static final Duration MAX_DELAY = Duration.ofDays(3650);

	private static final int MAX_LINES = 100;

	private final PgqueClient client;

	private final ListenerIdentity identity;

	private final ContainerEvents events;

	private final CounterBoard counters;

	private final long batchId;

	private final @Nullable KeyHolds holds;

	private final Map<Long, Failure> failures = new LinkedHashMap<>();

	private final Set<Long> held = new LinkedHashSet<>();

	private final Map<Long, Outcome.PreparedReply> replies = new LinkedHashMap<>();

	/**
	 * Messages whose outcome is to come, and those behind the first of them.
	 */
	private final Queue<Long> window = new ArrayDeque<>();

	/**
	 * What counts one more, for the messages of the window that have an outcome.
	 */
	private final Map<Long, Runnable> doneInWindow = new HashMap<>();

	private @Nullable Long lastDone;

	private long handled;

	private long skipped;

	private final Runnable countHandled = () -> this.handled++;

	BatchCompleter(PgqueClient client, ListenerIdentity identity, ContainerEvents events, CounterBoard counters,
			long batchId, @Nullable KeyHolds holds) {
		this.client = client;
		this.identity = identity;
		this.events = events;
		this.counters = counters;
		this.batchId = batchId;
		this.holds = holds;
	}

	long batchId() {
		return this.batchId;
	}

	/**
	 * Announce a message, in the order of the ids.
	 */
	void expect(long messageId) {
		this.window.add(messageId);
	}

	void handled(PgqueMessage message) {
		passed(message.id());
		done(message.id(), this.countHandled);
	}

	void skipped(PgqueMessage message) {
		passed(message.id());
		done(message.id(), () -> this.skipped++);
	}

	/**
	 * Note as handled what has a lower id and no outcome.
	 */
	void handledBefore(long messageId) {
		for (Long open : this.window) {
			if (open < messageId && this.doneInWindow.putIfAbsent(open, this.countHandled) == null) {
				passed(open);
			}
		}
		advance();
	}

	/**
	 * Hold a message back: it comes again, with the one of its key that it waits for at
	 * the earliest, and that is no failure of it.
	 */
	void held(PgqueMessage message) {
		this.held.add(message.id());
		if (this.holds != null) {
			this.holds.held(message);
		}
		done(message.id(), () -> {
		});
	}

	/**
	 * Whether messages are held back at all.
	 */
	boolean keepsKeys() {
		return this.holds != null;
	}

	/**
	 * Whether a message has to be held back.
	 */
	boolean isHeld(PgqueMessage message) {
		return this.holds != null && this.holds.isHeld(message);
	}

	/**
	 * Return those of some messages that may be handed over together, and hold back the
	 * others.
	 */
	List<PgqueMessage> admit(List<PgqueMessage> messages) {
		if (this.holds == null) {
			return messages;
		}
		List<PgqueMessage> admitted = this.holds.admit(messages);
		Set<Long> ids = admitted.stream().map(PgqueMessage::id).collect(Collectors.toSet());
		messages.stream().filter((message) -> !ids.contains(message.id())).forEach(this::held);
		return admitted;
	}

	/**
	 * A handler has returned and may acknowledge the message later.
	 */
	void left(PgqueMessage message) {
		passed(message.id());
	}

	private void passed(long messageId) {
		if (this.holds != null) {
			this.holds.passed(messageId);
		}
	}

	/**
	 * Whether a message was announced and has no outcome.
	 */
	boolean isOpen(long messageId) {
		return !this.doneInWindow.containsKey(messageId) && this.window.contains(messageId);
	}

	/**
	 * Return how many messages, from the first without an outcome, are kept until the
	 * batch is settled.
	 */
	int windowSize() {
		return this.window.size();
	}

	/**
	 * Return how many messages have no outcome.
	 */
	int openCount() {
		return this.window.size() - this.doneInWindow.size();
	}

	void retry(PgqueMessage message, Duration delay, String reason) {
		if (this.holds != null) {
			this.holds.failed(message);
		}
		Duration bounded = (delay.compareTo(MAX_DELAY) < 0) ? delay : MAX_DELAY;
		failed(message, Nack.retry(message.id(), bounded, reason));
	}

	void deadLetter(PgqueMessage message, String reason) {
		passed(message.id());
		failed(message, Nack.dead(message.id(), reason));
	}

	private void failed(PgqueMessage message, Nack nack) {
		this.failures.put(message.id(), new Failure(nack, message.type(), message.deliveryAttempt()));
		done(message.id(), () -> {
		});
	}

	private void done(long messageId, Runnable count) {
		Long first = this.window.peek();
		if (first != null && first == messageId) {
			remove(first, count);
		}
		else {
			this.doneInWindow.put(messageId, count);
		}
		advance();
	}

	private void advance() {
		while (!this.doneInWindow.isEmpty() && !this.window.isEmpty()) {
			Long first = this.window.peek();
			Runnable count = this.doneInWindow.remove(first);
			if (count == null) {
				return;
			}
			remove(first, count);
		}
	}

	private void remove(Long first, Runnable count) {
		count.run();
		this.lastDone = first;
		this.window.remove();
	}

	/**
	 * Note what is to be sent when a message is settled as done.
	 */
	void reply(PgqueMessage message, Outcome.PreparedReply reply) {
		this.replies.put(message.id(), reply);
	}

	/**
	 * Return how many failures, replies and messages of keys that wait are kept until the
	 * batch is settled.
	 */
	int keptCount() {
		return this.failures.size() + this.replies.size() + this.held.size()
				+ ((this.holds != null) ? this.holds.size() : 0);
	}

	/**
	 * Settle the whole batch.
	 */
	void settleBatch() {
		settle(null);
	}

	/**
	 * Return whether nothing but the end of the batch is to be settled.
	 */
	boolean isAckOnly() {
		return this.failures.isEmpty() && this.held.isEmpty() && this.replies.isEmpty()
				&& (this.holds == null || this.holds.placed(null).isEmpty());
	}

	/**
	 * Note that the whole batch is settled, of which {@link #isAckOnly() nothing failed}.
	 */
	void settled() {
		AfterCommit.run(() -> count(new SettleResult(true, 0, List.of()), 0));
	}

	/**
	 * Settle what is done, if anything, up to the first message without an outcome. The
	 * rest comes again under another batch id, and with it what is done in the rest.
	 */
	void settlePrefix() {
		if (this.lastDone != null) {
			settle(this.lastDone);
		}
	}

	private void settle(@Nullable Long upTo) {
		List<Nack> nacks = new ArrayList<>(this.failures.size());
		this.failures.forEach((messageId, failure) -> {
			if (upTo == null || messageId <= upTo) {
				nacks.add(failure.nack());
			}
		});
		List<Long> held = this.held.stream().filter((id) -> upTo == null || id <= upTo).toList();
		SettleResult result = settle(upTo, nacks, held);
		if (!result.settled()) {
			this.counters.staleSettles.increment();
			logger.warn("Batch " + this.batchId + " of " + this.identity
					+ " was no longer open when it was to be settled: somebody else took it over or finished it. "
					+ "Nothing was changed; " + (this.handled + this.failures.size())
					+ " messages of it may be handled twice");
			return;
		}
		AfterCommit.run(() -> count(result, held.size()));
	}

	private void count(SettleResult result, int heldBack) {
		this.counters.handled.add(this.handled);
		this.counters.skipped.add(this.skipped);
		this.counters.retried.add(result.retried());
		this.counters.deadLettered.add(result.deadIds().size());
		this.counters.heldBack.add(heldBack);
		this.counters.batchesSettled.increment();
		tell(result.deadIds());
	}

	private SettleResult settle(@Nullable Long upTo, List<Nack> nacks, List<Long> held) {
		List<PgqueReply> due = new ArrayList<>();
		ReplySender sender = null;
		for (Map.Entry<Long, Outcome.PreparedReply> entry : this.replies.entrySet()) {
			if ((upTo == null || entry.getKey() <= upTo) && !this.failures.containsKey(entry.getKey())) {
				due.add(entry.getValue().reply());
				sender = entry.getValue().sender();
			}
		}
		Supplier<SettleResult> settling = settling(upTo, nacks, held);
		return (sender != null) ? sender.settle(settling, due) : settling.get();
	}

	private Supplier<SettleResult> settling(@Nullable Long upTo, List<Nack> nacks, List<Long> held) {
		KeyHolds holds = this.holds;
		if (holds != null) {
			List<Long> placed = holds.placed(upTo).stream().filter((id) -> !this.held.contains(id)).toList();
			if (!nacks.isEmpty() || !held.isEmpty() || !placed.isEmpty()) {
				return () -> this.client.holding().settle(this.batchId, upTo, nacks, held, placed);
			}
		}
		return () -> this.client.settle(this.batchId, upTo, nacks);
	}

	private void tell(List<Long> deadIds) {
		int lines = 0;
		for (Long deadId : deadIds) {
			Failure failure = this.failures.get(deadId);
			if (failure != null && ++lines <= MAX_LINES) {
				logger.error("Message " + deadId + " of " + this.identity + " became a dead letter after attempt "
						+ failure.deliveryAttempt() + ": " + failure.nack().reason());
			}
		}
		if (lines > MAX_LINES) {
			logger.error((lines - MAX_LINES) + " further messages of batch " + this.batchId + " of " + this.identity
					+ " became dead letters");
		}
		deadIds.forEach(this::publish);
	}

	private void publish(Long messageId) {
		Failure failure = this.failures.get(messageId);
		if (failure == null) {
			return;
		}
		this.events.deadLettered(messageId, failure.type(), failure.deliveryAttempt(), failure.nack().reason());
	}

	private record Failure(Nack nack, @Nullable String type, int deliveryAttempt) {
	}

}
