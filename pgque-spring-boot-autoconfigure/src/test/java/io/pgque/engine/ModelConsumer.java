package io.pgque.engine;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * What an {@link EngineModel} knows of a consumer: what it has to get, has failed at, and
 * is done with.
 */
final class ModelConsumer {

	static final int MAX_RETRIES = 2;

	private final String name;

	private final boolean group;

	private final List<ModelWorker> workers = new ArrayList<>();

	private final Set<Long> required = new TreeSet<>();

	private final Set<Long> finished = new TreeSet<>();

	private final Set<Long> dead = new TreeSet<>();

	/**
	 * How often an event was given back.
	 */
	private final Map<Long, Integer> failures = new HashMap<>();

	/**
	 * Events that were given back, or up, while their batch stays open.
	 */
	private final Set<Long> early = new HashSet<>();

	private final Set<Long> closedBatches = new HashSet<>();

	ModelConsumer(String name, boolean group) {
		this.name = name;
		this.group = group;
	}

	String name() {
		return this.name;
	}

	boolean isGroup() {
		return this.group;
	}

	List<ModelWorker> workers() {
		return this.workers;
	}

	Set<Long> deadLetters() {
		return this.dead;
	}

	boolean isEarly(long event) {
		return this.early.contains(event);
	}

	boolean isClosed(long batch) {
		return this.closedBatches.contains(batch);
	}

	/**
	 * Note events that were committed since the consumer subscribed.
	 */
	void require(List<Long> events) {
		this.required.addAll(events);
	}

	/**
	 * Check a delivery.
	 * @param retryCount as delivered, 0 for null
	 */
	void checkDelivery(long event, int retryCount) {
		assertThat(this.finished).as("done already").doesNotContain(event);
		if (!isEarly(event)) {
			assertThat(this.dead).as("given up").doesNotContain(event);
			assertThat(retryCount).as("redeliveries of event %d", event).isEqualTo(failuresOf(event));
		}
	}

	private int failuresOf(long event) {
		return this.failures.getOrDefault(event, 0);
	}

	/**
	 * Note that an event is given back.
	 * @param asDead whether it is given up whatever the number of failures
	 * @param undo receives what takes the note back
	 * @return whether it became a dead letter
	 */
	boolean fail(long event, boolean asDead, List<Runnable> undo) {
		if (asDead || failuresOf(event) >= MAX_RETRIES) {
			this.dead.add(event);
			undo.add(() -> this.dead.remove(event));
			return true;
		}
		this.failures.merge(event, 1, Integer::sum);
		undo.add(() -> this.failures.merge(event, -1, Integer::sum));
		return false;
	}

	/**
	 * Note that an event's failure is known while its batch stays open.
	 */
	void failEarly(long event, List<Runnable> undo) {
		this.early.add(event);
		undo.add(() -> this.early.remove(event));
	}

	/**
	 * Note that an event's batch ended, and its failure counts from now on.
	 */
	void endEarly(long event, List<Runnable> undo) {
		if (this.early.remove(event)) {
			undo.add(() -> this.early.add(event));
		}
	}

	void finish(long event, List<Runnable> undo) {
		assertThat(this.finished.add(event)).as("event %d is done once", event).isTrue();
		undo.add(() -> this.finished.remove(event));
	}

	void close(long batch, List<Runnable> undo) {
		if (this.closedBatches.add(batch)) {
			undo.add(() -> this.closedBatches.remove(batch));
		}
	}

	/**
	 * Note that a dead letter goes to this consumer again, its failures forgotten.
	 */
	void revive(long event) {
		this.dead.remove(event);
		this.failures.remove(event);
	}

	/**
	 * Check that nothing is missing once everything that could be delivered was.
	 */
	void checkComplete() {
		Set<Long> missing = new TreeSet<>(this.required);
		missing.removeAll(this.finished);
		missing.removeAll(this.dead);
		assertThat(missing).as("never delivered to %s", this.name).isEmpty();
	}

}
