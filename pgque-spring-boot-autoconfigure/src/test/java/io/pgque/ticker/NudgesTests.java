package io.pgque.ticker;

import java.time.Duration;
import java.util.List;

import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link Nudges}.
 */
class NudgesTests {

	private static final long MIN = Duration.ofMillis(50).toNanos();

	private final Nudges nudges = new Nudges(MIN);

	private long now() {
		return System.nanoTime();
	}

	@Test
	void queueThatWasNotTickedMayBeAtOnce() {
		this.nudges.add(List.of("a", "b", "a"));
		assertThat(this.nudges.take(now())).containsExactlyInAnyOrder("a", "b");
		assertThat(this.nudges.take(now())).isEmpty();
	}

	@Test
	void ticksOfAQueueKeepTheirDistance() {
		this.nudges.ticked("a", 0);
		this.nudges.add(List.of("a", "b"));
		assertThat(this.nudges.take(now())).containsExactly("b");
		assertThat(this.nudges.take(now() + MIN)).containsExactly("a");
	}

	@Test
	void slowTicksAreFartherApart() {
		this.nudges.ticked("a", 3 * MIN);
		this.nudges.add(List.of("a"));
		assertThat(this.nudges.take(now() + 5 * MIN)).isEmpty();
		assertThat(this.nudges.take(now() + 6 * MIN)).containsExactly("a");
	}

	@Test
	void waitsForTheFirstThatIsDue() throws InterruptedException {
		this.nudges.ticked("a", 0);
		this.nudges.add(List.of("a"));
		this.nudges.await(now() + Duration.ofMinutes(1).toNanos());
		assertThat(this.nudges.take(now())).containsExactly("a");
	}

}
