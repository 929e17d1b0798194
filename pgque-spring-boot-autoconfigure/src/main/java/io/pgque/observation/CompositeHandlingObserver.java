package io.pgque.observation;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

import io.pgque.listener.HandlingObserver;
import io.pgque.support.ReceivedMessage;

/**
 * Lets several observe, the first outermost.
 *
 * @since 0.1.0
 */
public final class CompositeHandlingObserver implements HandlingObserver {

	private final List<HandlingObserver> observers;

	private CompositeHandlingObserver(Collection<? extends HandlingObserver> observers) {
		this.observers = List.copyOf(observers);
	}

	/**
	 * Put observers together.
	 * @param observers the observers, outermost first
	 * @return one for all of them
	 */
	public static HandlingObserver of(Collection<? extends HandlingObserver> observers) {
		return switch (observers.size()) {
			case 0 -> HandlingObserver.NONE;
			case 1 -> observers.iterator().next();
			default -> new CompositeHandlingObserver(observers);
		};
	}

	@Override
	public Handling begin(String listenerId, List<? extends ReceivedMessage> messages, Purpose purpose) {
		List<Handling> inner = new ArrayList<>(this.observers.size());
		this.observers.forEach((observer) -> inner.add(0, observer.begin(listenerId, messages, purpose)));
		return new Handlings(inner);
	}

	private record Handlings(List<Handling> innermostFirst) implements Handling {

		@Override
		public void failed(Throwable failure) {
			this.innermostFirst.forEach((handling) -> handling.failed(failure));
		}

		@Override
		public void close() {
			this.innermostFirst.forEach(Handling::close);
		}

	}

}
