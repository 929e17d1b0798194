package io.pgque.listener;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import io.pgque.client.KeyPlace;
import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the order of keys while one batch is handled: a message whose key has an earlier
 * one that is to come again waits for it. Those before this batch have their places in
 * the database. What fails or waits in this batch comes behind all of them, and gets its
 * place when the batch is settled.
 */
final class KeyHolds {

	/**
	 * Messages of this batch whose keys had places when their page was read.
	 */
	private final Map<Long, Entry> entries = new HashMap<>();

	/**
	 * Up to which place all messages of a key have passed in this batch.
	 */
	private final Map<String, Long> passed = new HashMap<>();

	/**
	 * Keys of which a message has failed in this batch.
	 */
	private final Set<String> failed = new HashSet<>();

	/**
	 * Keys of which a message was held back that had no place. In the order of the ids
	 * others may follow that have one, and come before it.
	 */
	private final Set<String> held = new HashSet<>();

	/**
	 * Where batches go to any worker there is no order to keep.
	 * @throws InvalidListenerException when that is what the properties ask for
	 */
	static void check(ListenerIdentity identity, PgqueContainerProperties properties) {
		if (properties.isHoldFailedKeys() && properties.getMode() == ListenerMode.COOPERATIVE) {
			throw new InvalidListenerException(
					"The " + identity + " is to hold back later messages of a failed key, which does not go together "
							+ "with mode 'cooperative': that keeps no order",
					"Choose mode 'exclusive' or 'partitioned', or set holdFailedKeys to false "
							+ "(pgque.listener.hold-failed-keys, or in a containerCustomizer for this listener alone)");
		}
	}

	/**
	 * Note where messages stand that are about to be handled.
	 * @param keys the keys of the messages, by message id
	 * @param places the places of those whose keys have any
	 */
	void add(Map<Long, String> keys, List<KeyPlace> places) {
		for (KeyPlace place : places) {
			String key = keys.get(place.messageId());
			if (key != null) {
				this.entries.put(place.messageId(), new Entry(key, place.place(), place.after()));
			}
		}
	}

	/**
	 * Return whether a message has to wait for another one of its key.
	 */
	boolean isHeld(PgqueMessage message) {
		return !isNext(message, this.passed);
	}

	/**
	 * Return those of some messages that have to wait for no others but themselves.
	 * @param messages messages in the order of their ids
	 */
	List<PgqueMessage> admit(List<PgqueMessage> messages) {
		Map<String, Long> passed = new HashMap<>(this.passed);
		List<PgqueMessage> admitted = new ArrayList<>();
		for (PgqueMessage message : messages) {
			if (isNext(message, passed)) {
				admitted.add(message);
				pass(message.id(), passed);
			}
		}
		return admitted;
	}

	private boolean isNext(PgqueMessage message, Map<String, Long> passed) {
		String key = message.key();
		if (key == null) {
			return true;
		}
		Entry entry = this.entries.get(message.id());
		boolean hasPlace = entry != null && entry.place() != null;
		return !this.failed.contains(key) && (hasPlace || !this.held.contains(key))
				&& (entry == null || isNext(entry, passed));
	}

	private static boolean isNext(Entry entry, Map<String, Long> passed) {
		return entry.after() == null || entry.after().equals(passed.get(entry.key()));
	}

	/**
	 * Note that a message is done, or will be when it is acknowledged.
	 */
	void passed(long messageId) {
		pass(messageId, this.passed);
	}

	private void pass(long messageId, Map<String, Long> passed) {
		Entry entry = this.entries.get(messageId);
		if (entry != null && entry.place() != null && isNext(entry, passed)) {
			passed.put(entry.key(), entry.place());
		}
	}

	/**
	 * Note that a message has failed and is to come again.
	 */
	void failed(PgqueMessage message) {
		if (message.key() != null) {
			this.failed.add(message.key());
		}
	}

	/**
	 * Note that a message is held back.
	 */
	void held(PgqueMessage message) {
		Entry entry = this.entries.get(message.id());
		if (message.key() != null && (entry == null || entry.place() == null)) {
			this.held.add(message.key());
		}
	}

	/**
	 * Return which messages have a place in the database.
	 * @param upTo the last message to look at, {@code null} for all of the batch
	 */
	List<Long> placed(@Nullable Long upTo) {
		return this.entries.entrySet()
			.stream()
			.filter((entry) -> entry.getValue().place() != null && (upTo == null || entry.getKey() <= upTo))
			.map(Map.Entry::getKey)
			.toList();
	}

	/**
	 * Return how many places are kept until the batch is settled.
	 */
	int size() {
		return this.entries.size();
	}

	/**
	 * Where a message stands.
	 *
	 * @param key its key
	 * @param place its own place, {@code null} for behind all others
	 * @param after the place before it, {@code null} when there is none
	 */
	private record Entry(String key, @Nullable Long place, @Nullable Long after) {
	}

}
