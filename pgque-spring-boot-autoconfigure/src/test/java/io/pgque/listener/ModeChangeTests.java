package io.pgque.listener;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for consumers whose listener gets another mode: the cursor is carried over, or
 * start-up says how.
 */
@PgqueDatabase
class ModeChangeTests {

	private final TestDatabase database;

	private ListenerFixture fixture;

	ModeChangeTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.fixture = new ListenerFixture(this.database, this.database.pool(8));
		this.fixture.properties.setPartitions(2);
	}

	@AfterEach
	void tearDown() throws Exception {
		this.fixture.close();
	}

	@ParameterizedTest
	@CsvSource({ "exclusive, cooperative", "exclusive, partitioned", "cooperative, exclusive",
			"cooperative, partitioned" })
	void cursorIsCarriedOver(String before, String after) {
		String queue = before + "_" + after;
		List<String> handled = new CopyOnWriteArrayList<>();
		var first = container(queue, before, handled);
		first.start();
		this.fixture.send(queue, "type", "1");
		await().until(() -> handled.size() == 1);
		first.stop();
		this.fixture.send(queue, "type", "2");
		container(queue, after, handled).start();
		this.fixture.send(queue, "type", "3");
		await().until(() -> handled.size() >= 3);
		await().until(() -> this.fixture.isDrained(queue));
		assertThat(handled).containsExactlyInAnyOrder("1", "2", "3");
	}

	@ParameterizedTest
	@CsvSource({ "partitioned, exclusive", "partitioned, cooperative" })
	void slotsAreNotGivenUpByTheWay(String before, String after) {
		String queue = before + "_" + after;
		container(queue, before, List.of());
		assertThatExceptionOfType(InvalidListenerException.class).isThrownBy(() -> container(queue, after, List.of()))
			.withMessageContaining("is to be " + after + ", but it is partitioned with 2 slots")
			.withMessageContaining("select pgque.change_partitions('" + queue + "', 'consumer', 0)");
		this.database.value(Boolean.class, "select pgque.change_partitions(?, 'consumer', 0)", queue);
		assertThat(container(queue, after, List.of())).isNotNull();
	}

	@Test
	void anotherNumberOfSlotsNeedsAStatement() {
		container("slots", "partitioned", List.of());
		this.fixture.properties.setPartitions(3);
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> container("slots", "partitioned", List.of()))
			.withMessageContaining("is to be partitioned with 3 slots, but it is partitioned with 2 slots")
			.withMessageContaining("Set partitions=2")
			.withMessageContaining("select pgque.change_partitions('slots', 'consumer', 3)");
	}

	@Test
	void consumerInUseIsNotChanged() {
		var exclusive = container("in_use", "exclusive", List.of());
		exclusive.start();
		await().until(() -> !exclusive.isStandby());
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> container("in_use", "partitioned", List.of()))
			.withMessageContaining("and in use")
			.withMessageContaining("select pgque.change_partitions('in_use', 'consumer', 2)");
		exclusive.stop();
		var cooperative = container("in_use", "cooperative", List.of());
		cooperative.start();
		await().until(() -> !cooperative.isStandby());
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> container("in_use", "exclusive", List.of()))
			.withMessageContaining("but it is cooperative, and in use")
			.withMessageContaining("select pgque.dissolve_group('in_use', 'consumer')");
	}

	@Test
	void namesThatTheModeCanNotHaveAreRefused() {
		this.fixture.properties.setMode(ListenerMode.COOPERATIVE);
		ConsumerSubscription dotted = new ConsumerSubscription(this.fixture.client,
				new ListenerIdentity("id", "names", "a.b"), this.fixture.properties);
		assertThatExceptionOfType(InvalidListenerException.class).isThrownBy(dotted::subscribe)
			.withMessageContaining("can't be cooperative: its consumer's name contains '.'");
	}

	private DefaultPgqueMessageListenerContainer container(String queue, String mode, List<String> handled) {
		this.fixture.properties.setMode(ListenerMode.valueOf(mode.toUpperCase(java.util.Locale.ROOT)));
		return this.fixture.container(queue, (message) -> handled.add(message.payload()));
	}

}
