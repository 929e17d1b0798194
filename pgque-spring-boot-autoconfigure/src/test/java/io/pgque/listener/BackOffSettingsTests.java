package io.pgque.listener;

import java.time.Duration;
import java.util.stream.IntStream;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/**
 * Tests for {@link BackOffSettings}.
 */
class BackOffSettingsTests {

	@ParameterizedTest
	@CsvSource({ "PT5S, 2, PT10M, 0, PT5S", "PT5S, 2, PT10M, 1, PT10S", "PT5S, 2, PT10M, 6, PT5M20S",
			"PT5S, 2, PT10M, 7, PT10M", "PT5S, 2, PT10M, 1000, PT10M", "PT5S, 2, PT10M, 2147483647, PT10M",
			"PT0.4S, 1, PT10M, 9, PT0.4S", "PT0.4S, 1.5, PT10M, 1, PT0.6S", "PT10M, 2, PT5M, 0, PT5M",
			"PT0S, 2, PT10M, 2147483647, PT0S", "PT5S, 2, PT10M, -1, PT5S", "PT5S, 10, PT0S, 3, PT0S",
			"PT2562047788015H, 1.7976931348623157E308, PT2562047788015H, 5, PT2562047788015H" })
	void delays(Duration delay, double multiplier, Duration maxDelay, int retryCount, Duration expected) {
		assertThat(new BackOffSettings(delay, multiplier, maxDelay, Duration.ZERO).delayFor(retryCount))
			.isEqualTo(expected);
	}

	@Test
	void jitterMakesDelaysDifferWithinItsLimits() {
		BackOffSettings settings = new BackOffSettings(Duration.ofSeconds(5), 2, Duration.ofSeconds(20),
				Duration.ofSeconds(2));
		assertThat(IntStream.range(0, 1000).mapToObj((i) -> settings.delayFor(0)))
			.allMatch((delay) -> !delay.minusSeconds(3).isNegative() && delay.minusSeconds(7).toMillis() <= 0)
			.anyMatch((delay) -> delay.toMillis() < 4500)
			.anyMatch((delay) -> delay.toMillis() > 5500);
		assertThat(IntStream.range(0, 1000).mapToObj((i) -> settings.delayFor(9)))
			.allMatch((delay) -> delay.toMillis() >= 18_000 && delay.toMillis() <= 20_000)
			.anyMatch((delay) -> delay.toMillis() < 19_000);
	}

	@Test
	void jitterAboveTheDelayGivesNoNegativeOne() {
		BackOffSettings settings = new BackOffSettings(Duration.ofMillis(10), 1, Duration.ofSeconds(20),
				Duration.ofSeconds(1));
		assertThat(IntStream.range(0, 1000).mapToObj((i) -> settings.delayFor(0))).noneMatch(Duration::isNegative);
	}

	@Test
	void nonsenseIsRefused() {
		Duration second = Duration.ofSeconds(1);
		Duration negative = Duration.ofSeconds(-1);
		assertThatIllegalArgumentException().isThrownBy(() -> new BackOffSettings(negative, 2, second, second));
		assertThatIllegalArgumentException().isThrownBy(() -> new BackOffSettings(second, 0.5, second, second));
		assertThatIllegalArgumentException().isThrownBy(() -> new BackOffSettings(second, Double.NaN, second, second));
		assertThatIllegalArgumentException()
			.isThrownBy(() -> new BackOffSettings(second, Double.POSITIVE_INFINITY, second, second));
		assertThatIllegalArgumentException().isThrownBy(() -> new BackOffSettings(second, 2, negative, second));
		assertThatIllegalArgumentException().isThrownBy(() -> new BackOffSettings(second, 2, second, negative));
	}

}
