package io.pgque.listener;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Messages while a handler has them, and the outcomes that it has told. A handler may
 * tell them from several threads.
 */
final class HandedBatch implements PgqueBatch {

	private final List<PgqueMessage> messages;

	private final BatchRun run;

	private final ReentrantLock lock = new ReentrantLock();

	/**
	 * What the handler has told; most never tell anything.
	 */
	private @Nullable Tellings tellings;

	private boolean acknowledged;

	private boolean closed;

	HandedBatch(List<PgqueMessage> messages, BatchRun run) {
		this.messages = List.copyOf(messages);
		this.run = run;
	}

	@Override
	public List<PgqueMessage> messages() {
		return this.messages;
	}

	@Override
	public void done(PgqueMessage message) {
		tell(message, new Told(Outcome.HANDLED, null));
	}

	@Override
	public void skip(PgqueMessage message) {
		tell(message, new Told(Outcome.SKIPPED, null));
	}

	@Override
	public void retry(PgqueMessage message, Duration delay, @Nullable String reason) {
		tell(message, new Told(new Outcome.Decided(FailureAction.retry(delay), reason), null));
	}

	@Override
	public void deadLetter(PgqueMessage message, String reason) {
		tell(message, new Told(new Outcome.Decided(FailureAction.deadLetter(), reason), null));
	}

	@Override
	public void failed(PgqueMessage message, Exception failure) {
		Assert.notNull(failure, "failure must not be null");
		tell(message, new Told(Outcome.OPEN, failure));
	}

	@Override
	public void acknowledge() {
		this.lock.lock();
		try {
			requireOpen();
			this.acknowledged = true;
		}
		finally {
			this.lock.unlock();
		}
	}

	private void tell(PgqueMessage message, Told outcome) {
		this.lock.lock();
		try {
			requireOpen();
			Tellings tellings = tellings();
			if (tellings.ids().contains(message.id())) {
				tellings.told().put(message.id(), outcome);
				return;
			}
			Assert.isTrue(outcome.outcome() instanceof Outcome.Decided && this.run.isOpen(message), () -> "Message "
					+ message.id() + " is none of those that the handler was given, " + "or has its outcome already");
			tellings.earlier().put(message.id(), new Earlier(message, outcome.outcome()));
		}
		finally {
			this.lock.unlock();
		}
	}

	private Tellings tellings() {
		if (this.tellings == null) {
			this.tellings = new Tellings(this.messages.stream().map(PgqueMessage::id).collect(Collectors.toSet()),
					new HashMap<>(), new LinkedHashMap<>());
		}
		return this.tellings;
	}

	private void requireOpen() {
		Assert.state(!this.closed, "The handler has returned: what it did not tell until then is decided");
	}

	/**
	 * The handler has returned: note what it told about messages before its own, and take
	 * nothing any more.
	 */
	void close() {
		Tellings tellings;
		this.lock.lock();
		try {
			this.closed = true;
			tellings = this.tellings;
		}
		finally {
			this.lock.unlock();
		}
		if (tellings != null) {
			tellings.earlier().values().forEach((told) -> this.run.note(told.message(), told.outcome()));
		}
		if (this.acknowledged) {
			this.run.acknowledgeBefore(this.messages.get(0).id());
		}
	}

	boolean isAcknowledged() {
		return this.acknowledged;
	}

	/**
	 * Return what the handler told about a message.
	 */
	@Nullable Told told(PgqueMessage message) {
		Tellings tellings = this.tellings;
		return (tellings != null) ? tellings.told().get(message.id()) : null;
	}

	/**
	 * What a handler told.
	 *
	 * @param ids the messages that it was given
	 * @param told about them
	 * @param earlier about messages that were handed over before
	 */
	private record Tellings(Set<Long> ids, Map<Long, Told> told, Map<Long, Earlier> earlier) {
	}

	/**
	 * What a handler told about a message.
	 *
	 * @param outcome the outcome, unless there is a failure
	 * @param failure the failure that is left to the error handler
	 */
	record Told(Outcome outcome, @Nullable Exception failure) {
	}

	private record Earlier(PgqueMessage message, Outcome outcome) {
	}

}
