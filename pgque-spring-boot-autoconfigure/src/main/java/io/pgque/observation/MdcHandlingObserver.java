package io.pgque.observation;

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

	private volatile BatchText batch = new BatchText(0, "0");

	/**
	 * Creates an observer.
	 */
	public MdcHandlingObserver() {
	}

	@Override
	public Handling begin(String listenerId, List<? extends ReceivedMessage> messages, Purpose purpose) {
		return this.guard.call(() -> {
			Map<String, String> before = MDC.getCopyOfContextMap();
			Restore restore = new Restore(this.guard, before);
			try {
				putKeys(listenerId, messages);
			}
			catch (RuntimeException | Error ex) {
				restore.close();
				throw ex;
			}
			return restore;
		}, Handling.NONE);
	}

	private void putKeys(String listenerId, List<? extends ReceivedMessage> messages) {
		ReceivedMessage first = messages.get(0);
		MDC.put("pgque.queue", first.queue());
		MDC.put("pgque.consumer", first.consumer());
		MDC.put("pgque.listener", listenerId);
		if (first instanceof PgqueMessage message) {
			MDC.put("pgque.batch", text(message.batchId()));
		}
		if (messages.size() == 1) {
			MDC.put("pgque.message", Long.toString(first.id()));
			String type = first.type();
			MDC.put("pgque.type", (type != null) ? type : "none");
			MDC.put("pgque.attempt", Integer.toString(first.deliveryAttempt()));
		}
	}

	private String text(long batchId) {
		BatchText batch = this.batch;
		if (batch.id() != batchId) {
			batch = new BatchText(batchId, Long.toString(batchId));
			this.batch = batch;
		}
		return batch.text();
	}

	/**
	 * A batch id, which many messages have in common.
	 */
	private record BatchText(long id, String text) {
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
