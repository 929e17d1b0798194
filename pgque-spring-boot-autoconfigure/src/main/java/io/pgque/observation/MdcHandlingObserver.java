package io.pgque.observation;

import java.util.LinkedHashMap;
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
 * {@code pgque.attempt}.
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
			Map<String, @Nullable String> before = new LinkedHashMap<>();
			keys(listenerId, messages).forEach((key, value) -> {
				before.put(key, MDC.get(key));
				MDC.put(key, value);
			});
			return new Restore(this.guard, before);
		}, Handling.NONE);
	}

	private static Map<String, String> keys(String listenerId, List<? extends ReceivedMessage> messages) {
		ReceivedMessage first = messages.get(0);
		Map<String, String> keys = new LinkedHashMap<>();
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
		return keys;
	}

	private record Restore(ObservationGuard guard, Map<String, @Nullable String> before) implements Handling {

		@Override
		public void failed(Throwable failure) {
		}

		@Override
		public void close() {
			this.guard.run(() -> this.before.forEach((key, value) -> {
				if (value != null) {
					MDC.put(key, value);
				}
				else {
					MDC.remove(key);
				}
			}));
		}

	}

}
