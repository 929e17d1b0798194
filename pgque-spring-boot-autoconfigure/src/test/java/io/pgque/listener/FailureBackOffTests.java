package io.pgque.listener;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.apache.commons.logging.LogFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static io.pgque.listener.ContainerDeliveryTests.count;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link FailureBackOff}.
 */
@ExtendWith(OutputCaptureExtension.class)
class FailureBackOffTests {

	private final List<String> told = new ArrayList<>();

	private final FailureBackOff backOff = new FailureBackOff(LogFactory.getLog(FailureBackOffTests.class), "Trying",
			Duration.ofMillis(100), Duration.ofMillis(400), new FailureBackOff.Observer() {

				@Override
				public void failing(Throwable failure) {
					FailureBackOffTests.this.told.add(String.valueOf(failure.getMessage()));
				}

				@Override
				public void recovered() {
					FailureBackOffTests.this.told.add("recovered");
				}

			});

	private static IllegalStateException failure(String message) {
		return new IllegalStateException(message);
	}

	@Test
	void delaysDoubleUpToTheLongestAndBeginAnew() {
		assertThat(List.of(delay(), delay(), delay(), delay())).containsExactly(100L, 200L, 400L, 400L);
		this.backOff.succeeded();
		assertThat(delay()).isEqualTo(100);
	}

	private long delay() {
		return this.backOff.failed(failure("again")).toMillis();
	}

	@Test
	void oneStackTraceAndThenOneLineATime(CapturedOutput output) {
		for (int i = 0; i < 5; i++) {
			this.backOff.failed(failure("down"));
		}
		this.backOff.succeeded();
		assertThat(count(output, "Trying failed")).isEqualTo(5);
		assertThat(count(output, "\tat io.pgque.listener.FailureBackOffTests.failure(")).isOne();
		assertThat(output).contains("(failure 5 in a row): java.lang.IllegalStateException: down")
			.contains("Trying works again, after 5 failures");
	}

	@Test
	void whatFailsAndWorksInTurnGetsOneStackTraceOfEachKind(CapturedOutput output) {
		for (int i = 0; i < 5; i++) {
			this.backOff.failed(failure("flapping"));
			this.backOff.succeeded();
		}
		this.backOff.failed(new IllegalArgumentException("another kind"));
		assertThat(count(output, "\tat io.pgque.listener.FailureBackOffTests.failure(")).isOne();
		assertThat(count(output, "Trying failed, trying again in 100 ms: java.lang.IllegalStateException: flapping"))
			.isEqualTo(4);
		assertThat(count(output, "java.lang.IllegalArgumentException: another kind\n\tat ")).isOne();
	}

	@Test
	void tellsWhenItBeginsToFailAndWhenItWorksAgain() {
		this.backOff.succeeded();
		this.backOff.failed(failure("first"));
		this.backOff.failed(failure("second"));
		this.backOff.succeeded();
		this.backOff.succeeded();
		assertThat(this.told).containsExactly("first", "recovered");
	}

}
