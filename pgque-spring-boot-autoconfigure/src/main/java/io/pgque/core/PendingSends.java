package io.pgque.core;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

/**
 * What one transaction is going to send, in its order, per queue. Follows savepoints:
 * what was collected since one is dropped when the transaction is rolled back to it, and
 * what was collected before but written since is to be written again.
 */
final class PendingSends {

	/**
	 * How much text is collected for a queue before it is written.
	 */
	private static final long MAX_CHARS = 8L * 1024 * 1024;

	private final BiConsumer<String, List<OutgoingEvent>> writer;

	private final Map<String, Queue> queues = new LinkedHashMap<>();

	private final Map<Object, Map<String, Mark>> savepoints = new IdentityHashMap<>();

	PendingSends(BiConsumer<String, List<OutgoingEvent>> writer) {
		this.writer = writer;
	}

	void add(OutgoingEvent event) {
		Queue queue = this.queues.computeIfAbsent(event.queue(), (name) -> new Queue());
		queue.events.add(event);
		queue.chars += event.size();
		if (queue.chars > MAX_CHARS) {
			write(event.queue());
		}
	}

	void write(String name) {
		Queue queue = this.queues.get(name);
		if (queue == null || queue.written == queue.events.size()) {
			return;
		}
		this.writer.accept(name, List.copyOf(queue.events.subList(queue.written, queue.events.size())));
		queue.written = queue.events.size();
		queue.chars = 0;
		if (this.savepoints.isEmpty()) {
			queue.truncate(0);
		}
	}

	void writeAll() {
		this.queues.keySet().forEach(this::write);
	}

	/**
	 * Return the queues for which something is still to be written.
	 */
	Set<String> unwritten() {
		return this.queues.entrySet()
			.stream()
			.filter((entry) -> entry.getValue().written < entry.getValue().events.size())
			.map(Map.Entry::getKey)
			.collect(Collectors.toSet());
	}

	void savepoint(Object savepoint) {
		Map<String, Mark> marks = new LinkedHashMap<>();
		this.queues.forEach((name, queue) -> marks.put(name, new Mark(queue.events.size(), queue.written)));
		this.savepoints.put(savepoint, marks);
	}

	/**
	 * Return to a savepoint; to one that is not known, from before the first message.
	 */
	void rollbackTo(Object savepoint) {
		@Nullable Map<String, Mark> marks = this.savepoints.get(savepoint);
		this.queues.forEach((name, queue) -> {
			Mark mark = (marks != null) ? marks.get(name) : null;
			queue.truncate((mark != null) ? mark.size() : 0);
			queue.written = (mark != null) ? mark.written() : 0;
			queue.chars = queue.events.subList(queue.written, queue.events.size())
				.stream()
				.mapToLong(OutgoingEvent::size)
				.sum();
		});
	}

	private record Mark(int size, int written) {
	}

	private static final class Queue {

		private final List<OutgoingEvent> events = new ArrayList<>();

		private int written;

		private long chars;

		private void truncate(int size) {
			this.events.subList(size, this.events.size()).clear();
			this.written = Math.min(this.written, size);
		}

	}

}
