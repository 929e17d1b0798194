package io.pgque.core;

import java.util.LinkedHashSet;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import org.springframework.transaction.support.TransactionSynchronization;

/**
 * What is sent in one transaction: collects what can wait, writes it before the commit,
 * and tells of the commit.
 */
abstract class JoinedTransaction implements TransactionSynchronization {

	private final SendTransactions sends;

	/**
	 * What was sent to, and nobody was told of yet.
	 */
	private final Set<String> queues = new LinkedHashSet<>();

	private @Nullable PendingSends pending;

	/**
	 * Whether it is too late to collect.
	 */
	private boolean finished;

	JoinedTransaction(SendTransactions sends) {
		this.sends = sends;
	}

	/**
	 * Collect a message, if something is going to write it.
	 * @return whether it was collected
	 */
	boolean collect(OutgoingEvent event) {
		if (this.finished) {
			return false;
		}
		PendingSends pending = this.pending;
		if (pending == null) {
			pending = new PendingSends(this.sends::write);
			this.pending = pending;
		}
		pending.add(event);
		return true;
	}

	/**
	 * Write what was collected for a queue.
	 */
	void writePending(String queue) {
		if (this.pending != null) {
			this.pending.write(queue);
		}
	}

	/**
	 * Note that something was sent, or collected.
	 */
	void sent(String queue) {
		this.queues.add(queue);
	}

	/**
	 * Write what was collected: nothing but the commit is certain to come any more.
	 */
	void finish() {
		this.finished = true;
		flush();
	}

	@Override
	public int getOrder() {
		// Other callbacks may take their time, and may begin other transactions.
		return HIGHEST_PRECEDENCE;
	}

	@Override
	public void savepoint(Object savepoint) {
		if (this.pending != null) {
			this.pending.savepoint(savepoint);
		}
	}

	@Override
	public void savepointRollback(Object savepoint) {
		if (this.pending != null) {
			this.pending.rollbackTo(savepoint);
		}
	}

	@Override
	public void flush() {
		if (this.pending != null) {
			this.pending.writeAll();
		}
	}

	@Override
	public void afterCommit() {
		this.sends.tell(this.queues);
	}

	@Override
	public void afterCompletion(int status) {
		if (status == STATUS_COMMITTED && !this.queues.isEmpty()) {
			// Sent since the commit.
			this.sends.commitLate(this.queues);
		}
		if (status != STATUS_ROLLED_BACK) {
			this.sends.tell(this.queues);
		}
		this.pending = null;
	}

	/**
	 * Write what should have been written before the commit.
	 * @return what it was sent to
	 */
	Set<String> finishLate() {
		if (this.finished || this.pending == null) {
			return Set.of();
		}
		Set<String> late = this.pending.unwritten();
		finish();
		this.queues.addAll(late);
		return late;
	}

}
