package io.pgque.listener;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.event.ListenerContainerFailingEvent;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link ContainerHealth}.
 */
class ContainerHealthTests {

	private final List<String> events = new CopyOnWriteArrayList<>();

	private final ContainerHealth health = new ContainerHealth(
			new ContainerEvents(this, new ListenerIdentity("test", "orders", "billing"),
					(event) -> this.events.add((event instanceof ListenerContainerFailingEvent failing)
							? String.valueOf(failing.getFailure().getMessage()) : event.getClass().getSimpleName())));

	private final ContainerHealth.Part first = this.health.part("first");

	private final ContainerHealth.Part second = this.health.part("second");

	@Test
	void failsWhileOneOfItsPartsDoes() {
		assertThat(this.health.isFailing()).isFalse();
		this.first.failing(new IllegalStateException("of the first"));
		this.second.failing(new IllegalStateException("of the second"));
		this.first.recovered();
		assertThat(this.health.isFailing()).isTrue();
		this.second.recovered();
		assertThat(this.health.isFailing()).isFalse();
		assertThat(this.events).containsExactly("of the first", "ListenerContainerRecoveredEvent");
	}

	@Test
	void partThatWorksFailsWhileItCannotKeepWhatItHolds() {
		this.first.keeps(null);
		this.first.keeps(new IllegalStateException("no heartbeat"));
		this.first.keeps(new IllegalStateException("still no heartbeat"));
		this.first.failing(new IllegalStateException("no batch either"));
		this.first.recovered();
		assertThat(this.health.isFailing()).isTrue();
		this.first.keeps(null);
		assertThat(this.health.isFailing()).isFalse();
		assertThat(this.events).containsExactly("no heartbeat", "ListenerContainerRecoveredEvent");
	}

	@Test
	void partThatEndsLeavesTheOthers() {
		this.first.failing(new IllegalStateException("gone"));
		this.health.fine("first");
		assertThat(this.health.isFailing()).isFalse();
		assertThat(this.events).containsExactly("gone", "ListenerContainerRecoveredEvent");
	}

	@Test
	void stoppingIsNoRecovery() {
		this.first.failing(new IllegalStateException("gone"));
		this.health.stopped();
		assertThat(this.health.isFailing()).isFalse();
		assertThat(this.events).containsExactly("gone");
	}

}
