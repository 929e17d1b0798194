package io.pgque.core;

import java.time.Duration;
import java.util.List;

import io.pgque.client.PgqueClient;
import io.pgque.support.header.HeaderColumn;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * The operations on dead letters.
 */
final class DeadLetters implements PgqueDeadLetterOperations {

	private final PgqueClient client;

	private final HeaderColumn headerColumn;

	DeadLetters(PgqueClient client, HeaderColumn headerColumn) {
		this.client = client;
		this.headerColumn = headerColumn;
	}

	@Override
	public List<DeadLetter> inspect(String queue, int limit) {
		return list(PgqueNames.requireQueue(queue), limit);
	}

	@Override
	public List<DeadLetter> inspectAll(int limit) {
		return list(null, limit);
	}

	private List<DeadLetter> list(@Nullable String queue, int limit) {
		Assert.isTrue(limit > 0, "limit must be positive");
		return this.client.deadLetters(queue, limit)
			.stream()
			.map((row) -> DeadLetter.from(row, this.headerColumn))
			.toList();
	}

	@Override
	public long count(String queue) {
		return this.client.countDeadLetters(PgqueNames.requireQueue(queue));
	}

	@Override
	public long countAll() {
		return this.client.countDeadLetters(null);
	}

	@Override
	public long replay(long id) {
		return this.client.redeliver(id);
	}

	@Override
	public long replayToAll(long id) {
		return this.client.replay(id);
	}

	@Override
	public ReplayAllResult replayAll(String queue) {
		return ReplayAllResult.from(this.client.redeliverAll(PgqueNames.requireQueue(queue)));
	}

	@Override
	public int purge(String queue, Duration olderThan) {
		Assert.isTrue(!olderThan.isNegative(), "olderThan must not be negative");
		return this.client.purge(PgqueNames.requireQueue(queue), olderThan);
	}

}
