package io.pgque.core;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import io.pgque.PgqueException;
import io.pgque.client.DeadLetterRow;
import io.pgque.client.PgqueClient;
import io.pgque.client.ReplayAllResult;
import io.pgque.support.header.HeaderColumn;
import org.jspecify.annotations.Nullable;

import org.springframework.dao.DataAccessException;
import org.springframework.util.Assert;

/**
 * The operations on dead letters.
 */
final class DeadLetters implements PgqueDeadLetterOperations {

	private static final int CHUNK = 500;

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
	public long replay(long id) {
		return this.client.redeliver(id);
	}

	@Override
	public long replayToAll(long id) {
		return this.client.replay(id);
	}

	@Override
	public ReplayAllResult replayAll(String queue) {
		String name = PgqueNames.requireQueue(queue);
		Set<Long> failed = new HashSet<>();
		String firstError = null;
		long replayed = 0;
		long newest = Long.MAX_VALUE;
		List<Long> ids = open(name, newest, failed);
		while (!ids.isEmpty()) {
			// A message that fails again meanwhile is not replayed for ever.
			newest = Math.min(newest, ids.stream().mapToLong(Long::longValue).max().orElse(newest));
			for (Long id : ids) {
				try {
					this.client.redeliver(id);
					replayed++;
				}
				catch (PgqueException | DataAccessException ex) {
					failed.add(id);
					firstError = (firstError != null) ? firstError : ex.getMessage();
				}
			}
			ids = open(name, newest, failed);
		}
		return new ReplayAllResult(replayed, failed.size(), firstError);
	}

	private List<Long> open(String queue, long newest, Set<Long> failed) {
		return this.client.deadLetters(queue, CHUNK + failed.size())
			.stream()
			.map(DeadLetterRow::id)
			.filter((id) -> id <= newest && !failed.contains(id))
			.toList();
	}

	@Override
	public int purge(String queue, Duration olderThan) {
		Assert.isTrue(!olderThan.isNegative(), "olderThan must not be negative");
		return this.client.purge(PgqueNames.requireQueue(queue), olderThan);
	}

}
