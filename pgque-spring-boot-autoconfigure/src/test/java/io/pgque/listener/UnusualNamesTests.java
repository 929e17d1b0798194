package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Queues whose names need quoting wake their listeners like others.
 */
@PgqueDatabase
class UnusualNamesTests {

	private final TestDatabase database;

	UnusualNamesTests(TestDatabase database) {
		this.database = database;
	}

	@ParameterizedTest
	@ValueSource(strings = { "MixedCase", "with-hyphen.and.dot", "with \"quotes' and; semicolon", "\uD83D\uDE00 \u00e9",
			"123456789012345678901234567890123456789012345678901234567" })
	void tickWakesTheListener(String queue) throws Exception {
		try (ListenerFixture fixture = new ListenerFixture(this.database)) {
			fixture.properties.setPollInterval(Duration.ofHours(1));
			fixture.properties.setFallbackPollInterval(Duration.ofHours(1));
			WakeupListener wakeups = fixture.wakeups();
			List<String> handled = new CopyOnWriteArrayList<>();
			var container = fixture.container(queue,
					ListenerFixture.routes((message) -> handled.add(message.payload())),
					(created) -> created.setWakeupListener(wakeups));
			container.start();
			await().until(() -> wakeups.isListening(queue) && !container.isStandby());
			fixture.send(queue, 1);
			await().until(() -> handled.equals(List.of("1")));
			await().until(() -> fixture.isDrained(queue));
			assertThat(container.getCounters().failures()).isZero();
		}
	}

}
