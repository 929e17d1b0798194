package io.pgque.engine;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for the settings of a queue.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class QueueConfigTests {

	private static final String SET = "select pgque.set_queue_config(?, ?, ?)";

	private final Engine engine;

	private final String queue;

	QueueConfigTests(TestDatabase database) {
		this.engine = new Engine(database);
		this.queue = this.engine.queue();
	}

	@ParameterizedTest
	@CsvSource(nullValues = "NULL",
			value = { "ticker_max_count, 7, 7, 500", "ticker_max_lag, 250 milliseconds, 00:00:00.25, 00:00:03",
					"ticker_idle_period, 10 seconds, 00:00:10, 00:01:00", "ticker_paused, true, true, false",
					"rotation_period, 1 day, 1 day, 02:00:00", "external_ticker, on, true, false",
					"max_retries, 0, 0, NULL" })
	void settingIsChangedAndReset(String parameter, String value, String stored, String standard) {
		assertThat(set(parameter, value)).isEqualTo(1);
		assertThat(get(parameter)).isEqualTo(stored);
		assertThat(set(parameter, null)).isEqualTo(1);
		assertThat(get(parameter)).isEqualTo(standard);
	}

	@ParameterizedTest
	@CsvSource({ "ticker_max_count, 0", "ticker_max_count, -1", "ticker_max_lag, 0", "ticker_max_lag, -1 second",
			"ticker_idle_period, 0", "ticker_idle_period, -1 second", "rotation_period, 0", "rotation_period, -1 day",
			"max_retries, -1" })
	void valueOutOfRangeIsRefused(String parameter, String value) {
		String before = get(parameter);
		SqlError error = this.engine.error(SET, this.queue, parameter, value);
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(error.message()).contains(parameter).contains(value);
		assertThat(get(parameter)).isEqualTo(before);
	}

	@Test
	void retriesMayNotBeNegative() {
		assertThat(this.engine.error(SET, this.queue, "max_retries", "-1").message())
			.contains("max_retries must be >= 0");
	}

	@ParameterizedTest
	@CsvSource({ "ticker_max_count, many, 22P02", "ticker_max_count, 99999999999, 22003", "ticker_max_lag, soon, 22007",
			"rotation_period, never, 22007", "ticker_paused, perhaps, 22P02", "external_ticker, 2, 22P02",
			"max_retries, 1.5, 22P02" })
	void valueOfTheWrongTypeKeepsItsState(String parameter, String value, String state) {
		assertThat(this.engine.error(SET, this.queue, parameter, value).state()).isEqualTo(state);
	}

	@ParameterizedTest
	@CsvSource({ "queue_ticker_max_lag", "ntables", "disable_insert", "Ticker_Paused", "''" })
	void otherParametersCannotBeChanged(String parameter) {
		assertThat(this.engine.error(SET, this.queue, parameter, "1"))
			.isEqualTo(SqlError.raised("cannot change parameter: " + parameter));
	}

	@Test
	void nullsAreRefused() {
		assertThat(this.engine.error(SET, null, "ticker_paused", "true").message()).contains("Invalid NULL value");
		assertThat(this.engine.error(SET, this.queue, null, "true").message()).contains("Invalid NULL value");
		assertThat(this.engine.error(SET, null, null, null).state()).isEqualTo("P0001");
	}

	@Test
	void unknownQueue() {
		assertThat(this.engine.error(SET, "nowhere", "ticker_paused", "true"))
			.isEqualTo(SqlError.raised("No such event queue: nowhere"));
	}

	@Test
	void oneQueueIsConcerned() {
		String other = this.engine.queue();
		this.engine.configure(other, "ticker_max_count", "3");
		assertThat(get("ticker_max_count")).isEqualTo("500");
	}

	private int set(String parameter, String value) {
		return this.engine.value(Integer.class, SET, this.queue, parameter, value);
	}

	private String get(String parameter) {
		return this.engine.value(String.class,
				"select to_jsonb(q) ->> ('queue_' || ?) from pgque.queue q where queue_name = ?", parameter,
				this.queue);
	}

}
