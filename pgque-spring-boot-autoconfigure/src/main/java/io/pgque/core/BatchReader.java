package io.pgque.core;

import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;

import io.pgque.BatchNotOpenException;
import io.pgque.client.BatchPages;
import io.pgque.client.EventRow;
import io.pgque.client.Nack;
import io.pgque.client.Page;
import io.pgque.client.PgqueClient;
import io.pgque.support.header.HeaderColumn;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Reads a batch and settles it.
 */
final class BatchReader implements ReceivedBatch, Iterator<PgqueMessage> {

	static final int PAGE_SIZE = 1000;

	static final long PAGE_BYTES = 8L * 1024 * 1024;

	private final PgqueClient client;

	private final String queue;

	private final String consumer;

	private final HeaderColumn headerColumn;

	private final @Nullable Long batchId;

	private final @Nullable BatchPages pages;

	private final Map<Long, Nack> nacks = new LinkedHashMap<>();

	private Page page;

	private int index;

	private @Nullable Long current;

	private @Nullable Long lastDone;

	private boolean closed;

	private BatchReader(PgqueClient client, String queue, String consumer, HeaderColumn headerColumn, Page first) {
		this.client = client;
		this.queue = queue;
		this.consumer = consumer;
		this.headerColumn = headerColumn;
		this.page = first;
		this.batchId = first.isEmpty() ? null : first.batchId();
		this.pages = first.isEmpty() ? null : client.batchPages(first.batchId(), PAGE_SIZE, PAGE_BYTES);
	}

	static BatchReader receive(PgqueClient client, String queue, String consumer, HeaderColumn headerColumn) {
		return new BatchReader(client, queue, consumer, headerColumn,
				client.receiveBatch(queue, consumer, PAGE_SIZE, PAGE_BYTES));
	}

	@Override
	public boolean isEmpty() {
		return this.batchId == null;
	}

	@Override
	public long id() {
		if (this.batchId == null) {
			throw new NoSuchElementException("There was nothing to receive, and no batch");
		}
		return this.batchId;
	}

	@Override
	public Iterator<PgqueMessage> iterator() {
		return this;
	}

	@Override
	public boolean hasNext() {
		Assert.state(!this.closed, "The batch is closed");
		if (this.current != null) {
			this.lastDone = this.current;
			this.current = null;
		}
		if (this.index == this.page.rows().size() && this.page.more() && this.pages != null) {
			this.page = this.pages.next(this.page.rows().get(this.index - 1).id());
			this.index = 0;
		}
		return this.index < this.page.rows().size();
	}

	@Override
	public PgqueMessage next() {
		if (!hasNext()) {
			throw new NoSuchElementException("The batch has no further message");
		}
		EventRow row = this.page.rows().get(this.index++);
		this.current = row.id();
		return PgqueMessage.from(this.queue, this.consumer, row, this.headerColumn);
	}

	@Override
	public void retry(PgqueMessage message, Duration delay, @Nullable String reason) {
		Assert.isTrue(!delay.isNegative(), () -> "delay must not be negative: " + delay);
		give(message, Nack.retry(message.id(), delay, (reason != null) ? PgText.storable(reason) : null));
	}

	@Override
	public void deadLetter(PgqueMessage message, String reason) {
		give(message, Nack.dead(message.id(), PgText.storable(reason)));
	}

	private void give(PgqueMessage message, Nack nack) {
		Assert.state(!this.closed, "The batch is closed");
		Long last = (this.current != null) ? this.current : this.lastDone;
		Assert.isTrue(this.batchId != null && message.batchId() == this.batchId && last != null && message.id() <= last,
				() -> "Message " + message.id() + " is none of those that the batch has returned so far");
		this.nacks.put(message.id(), nack);
		if (this.current != null && message.id() == this.current) {
			this.lastDone = this.current;
		}
	}

	@Override
	public void close() {
		if (this.closed) {
			return;
		}
		this.closed = true;
		Long batchId = this.batchId;
		if (batchId == null || this.lastDone == null) {
			return;
		}
		boolean all = this.current == null && this.index == this.page.rows().size() && !this.page.more();
		if (!this.client.settle(batchId, all ? null : this.lastDone, List.copyOf(this.nacks.values())).settled()) {
			throw new BatchNotOpenException(batchId,
					"Batch " + batchId + " of consumer '" + this.consumer + "' of queue '" + this.queue
							+ "' was no longer open when it was to be settled: it was settled before, or somebody "
							+ "else took it over",
					"Receive for a consumer in one place only, or let a @PgqueListener do it");
		}
	}

}
