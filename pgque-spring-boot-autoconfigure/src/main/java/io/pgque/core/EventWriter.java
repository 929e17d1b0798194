package io.pgque.core;

import java.util.ArrayList;
import java.util.List;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import org.jspecify.annotations.Nullable;

/**
 * Writes messages to their queues.
 */
final class EventWriter {

	/**
	 * How much text goes into one statement. The server takes less than 1 GB.
	 */
	private static final int MAX_CHARS = 32 * 1024 * 1024;

	private final PgqueClient client;

	EventWriter(PgqueClient client) {
		this.client = client;
	}

	SendResult write(OutgoingEvent event) {
		String queue = event.queue();
		EventExtras extras = event.extras();
		if (event.idempotency() != null) {
			return this.client.sendOnce(queue, event.type(), event.data(), event.idempotency().key(),
					event.idempotency().window(), extras, SendResult::new);
		}
		if (event.delivery() instanceof OutgoingEvent.At at) {
			return SendResult.sent(this.client.sendAt(queue, event.type(), event.data(), at.time(), extras));
		}
		if (event.delivery() instanceof OutgoingEvent.After after) {
			return SendResult.sent(this.client.sendAfter(queue, event.type(), event.data(), after.delay(), extras));
		}
		return SendResult.sent(this.client.send(queue, event.type(), event.data(), extras));
	}

	/**
	 * Write plain messages of one queue in their order, as few statements as their size
	 * allows.
	 * @return the message ids
	 */
	List<Long> write(String queue, List<OutgoingEvent> events) {
		List<Long> ids = new ArrayList<>(events.size());
		int from = 0;
		while (from < events.size()) {
			int to = endOfChunk(events, from);
			ids.addAll(writeChunk(queue, events.subList(from, to)));
			from = to;
		}
		return ids;
	}

	private static int endOfChunk(List<OutgoingEvent> events, int from) {
		int end = from;
		long chars = 0;
		while (end < events.size() && (end == from || chars + events.get(end).size() <= MAX_CHARS)) {
			chars += events.get(end).size();
			end++;
		}
		return end;
	}

	private List<Long> writeChunk(String queue, List<OutgoingEvent> events) {
		OutgoingEvent first = events.get(0);
		if (events.size() == 1) {
			return List.of(write(first).id());
		}
		boolean alike = events.stream()
			.allMatch((event) -> event.type().equals(first.type()) && event.extras().equals(EventExtras.NONE));
		List<@Nullable String> data = new ArrayList<>(events.size());
		events.forEach((event) -> data.add(event.data()));
		if (alike) {
			return this.client.sendBatch(queue, first.type(), data);
		}
		return this.client.sendBatch(queue, events.stream().map(OutgoingEvent::type).toList(), data,
				events.stream().map(OutgoingEvent::extras).toList());
	}

}
