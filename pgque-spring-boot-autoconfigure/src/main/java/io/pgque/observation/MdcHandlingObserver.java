package io.pgque.observation;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

import io.pgque.core.PgqueMessage;
import io.pgque.listener.HandlingObserver;
import io.pgque.support.ReceivedMessage;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;

/**
 * Says in the log context which message is being handled: {@code pgque.queue},
 * {@code pgque.consumer}, {@code pgque.listener}, {@code pgque.batch} and, unless several
 * are handled together, {@code pgque.message}, {@code pgque.type} and
 * {@code pgque.attempt}. Afterwards the log context is what it was before, whatever
 * handlers leave there.
 *
 * @since 0.1.0
 */
public class MdcHandlingObserver implements HandlingObserver {

	private final ObservationGuard guard = new ObservationGuard("messages in the log context");

	/**
	 * Creates an observer.
	 */
	public MdcHandlingObserver() {
	}

	@Override
	public Handling begin(String listenerId, List<? extends ReceivedMessage> messages, Purpose purpose) {
		return this.guard.call(() -> {
			Map<String, String> before = MDC.getCopyOfContextMap();
			Map<String, String> during = (before != null) ? new HashMap<>(before) : new HashMap<>();
			addKeys(during, listenerId, messages);
			MDC.setContextMap(during);
			return new Restore(this.guard, before);
		}, Handling.NONE);
	}

	private static void addKeys(Map<String, String> keys, String listenerId, List<? extends ReceivedMessage> messages) {
		ReceivedMessage first = messages.get(0);
		keys.put("pgque.queue", first.queue());
		keys.put("pgque.consumer", first.consumer());
		keys.put("pgque.listener", listenerId);
		if (first instanceof PgqueMessage message) {
			keys.put("pgque.batch", Long.toString(message.batchId()));
		}
		if (messages.size() == 1) {
			keys.put("pgque.message", Long.toString(first.id()));
			String type = first.type();
			keys.put("pgque.type", (type != null) ? type : "none");
			keys.put("pgque.attempt", Integer.toString(first.deliveryAttempt()));
		}
	}

	private record Restore(ObservationGuard guard, @Nullable Map<String, String> before) implements Handling {

		@Override
		public void failed(Throwable failure) {
		}

		@Override
		public void close() {
			this.guard.run(() -> {
				if (this.before != null) {
					MDC.setContextMap(this.before);
				}
				else {
					MDC.clear();
				}
			});
		}

	}

}
