package io.pgque.engine;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Making a queue with its settings, pausing and resuming it.
 */
@PgqueDatabase
class ConfigApiTests {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	private static final String CREATE = "select pgque.create_queue(?, ?::jsonb)";

	TestDatabase database;

	private Engine engine;

	private String queue;

	@BeforeEach
	void name() {
		this.engine = new Engine(this.database.dataSource());
		this.queue = "configured-" + NUMBER.incrementAndGet();
	}

	@Test
	void aQueueIsMadeWithItsSettings() {
		assertThat(create("""
				{"ticker_max_count": 7, "ticker_max_lag": "70 ms", "ticker_idle_period": "7 s", "ticker_paused": true,
				 "rotation_period": "7 hours", "external_ticker": "yes", "max_retries": "2"}""")).isOne();
		assertThat(settings()).isEqualTo(Map.of("count", 7, "lag", "00:00:00.07", "idle", "00:00:07", "paused", true,
				"rotation", "07:00:00", "external", true, "retries", 2));
	}

	@Test
	void aQueueThatIsThereIsConfigured() {
		assertThat(create("{\"max_retries\": 2, \"ticker_max_count\": 7}")).isOne();
		assertThat(create("{\"max_retries\": 3}")).isZero();
		assertThat(settings()).containsEntry("retries", 3).containsEntry("count", 7);
	}

	@Test
	void jsonNullMeansTheDefault() {
		create("{\"ticker_max_count\": 7, \"ticker_max_lag\": \"1 s\", \"max_retries\": 2}");
		create("{\"ticker_max_count\": null, \"ticker_max_lag\": null, \"max_retries\": null}");
		assertThat(settings()).containsEntry("count", 500)
			.containsEntry("lag", "00:00:03")
			.containsEntry("retries", null);
	}

	@Test
	void withoutSettingsItIsAPlainQueue() {
		assertThat(create("{}")).isOne();
		assertThat(this.database.value(Integer.class, "select pgque.create_queue(?, null::jsonb)", this.queue))
			.isZero();
		assertThat(settings()).containsEntry("count", 500).containsEntry("paused", false);
		assertThat(this.database.value(Integer.class, "select pgque.create_queue(?)", this.queue)).isZero();
	}

	@Test
	void aWrongSettingLeavesNoQueue() {
		assertThat(failure("{\"ticker_max_count\": 7, \"no_such\": 1}").message())
			.contains("cannot change parameter: no_such");
		assertThat(failure("{\"ticker_max_count\": 0}").message()).contains("ticker_max_count");
		assertThat(failure("{\"max_retries\": -1}").message()).contains("max_retries must be >= 0");
		assertThat(failure("{\"ticker_max_count\": \"many\"}").state()).isEqualTo("22P02");
		assertThat(failure("{\"ticker_max_lag\": {\"s\": 1}}").message())
			.isEqualTo("value of ticker_max_lag must be a string, number, boolean or null, not {\"s\": 1}");
		assertThat(failure("{\"ticker_max_lag\": \"soon\"}").state()).isEqualTo("22007");
		for (String options : List.of("[]", "\"max_retries\"", "5", "null")) {
			assertThat(failure(options).message()).startsWith("options must be a JSON object");
		}
		assertThat(this.database.value(Boolean.class, "select exists (select from pgque.queue where queue_name = ?)",
				this.queue))
			.isFalse();
		assertThat(this.engine.error("select pgque.create_queue(null, '{}'::jsonb)").message())
			.contains("Invalid NULL value");
	}

	@Test
	void aPausedQueueTakesEventsAndDeliversThemLater() {
		create("{}");
		this.database.query("select pgque.subscribe(?, 'consumer')", this.queue);
		this.database.query("select pgque.pause_queue(?)", this.queue);
		this.database.query("select pgque.send(?, 'x'::text)", this.queue);
		assertThat(tick()).isEmpty();
		this.database.query("select pgque.pause_queue(?)", this.queue);
		this.database.query("select pgque.resume_queue(?)", this.queue);
		assertThat(tick()).containsExactly("ticked");
		assertThat(this.database.values(String.class, "select payload from pgque.receive(?, 'consumer')", this.queue))
			.containsExactly("x");
		assertThat(settings()).containsEntry("paused", false);
	}

	@Test
	void anUnknownQueueIsNotPaused() {
		for (String function : List.of("pause_queue", "resume_queue")) {
			assertThat(this.engine.error("select pgque." + function + "('nowhere')").message())
				.contains("No such event queue: nowhere");
			assertThat(this.engine.error("select pgque." + function + "(null)").message())
				.contains("Invalid NULL value");
		}
	}

	@Test
	void twelveSessionsConfigureOneQueue() throws Exception {
		try (Crowd crowd = new Crowd()) {
			List<Integer> made = crowd.atOnce(12, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.value(Integer.class, CREATE, this.queue,
							"{\"max_retries\": 1, \"ticker_max_count\": 2}");
				}
			});
			assertThat(made).containsOnlyOnce(1).hasSize(12);
		}
		assertThat(settings()).containsEntry("retries", 1).containsEntry("count", 2);
	}

	@Test
	void administratorsConfigureAndNobodyElse() {
		Engine administrator = new Engine(this.database.createLogin("pgque_admin").dataSource());
		assertThat(administrator.value(Integer.class, CREATE, this.queue, "{\"max_retries\": 1}")).isOne();
		administrator.rows("select pgque.pause_queue(?)", this.queue);
		administrator.rows("select pgque.resume_queue(?)", this.queue);
		for (Engine role : List.of(new Engine(this.database.createLogin("pgque_reader").dataSource()),
				new Engine(this.database.createLogin("pgque_writer").dataSource()))) {
			assertThat(role.error(CREATE, "denied", "{}").state()).isEqualTo("42501");
			assertThat(role.error("select pgque.pause_queue(?)", this.queue).state()).isEqualTo("42501");
			assertThat(role.error("select pgque.resume_queue(?)", this.queue).state()).isEqualTo("42501");
		}
	}

	private int create(String options) {
		return this.database.value(Integer.class, CREATE, this.queue, options);
	}

	private SqlError failure(String options) {
		return this.engine.error(CREATE, this.queue, options);
	}

	private List<String> tick() {
		return this.database.values(String.class, "select outcome from pgque.tick_now(array[?])", this.queue);
	}

	private Map<String, Object> settings() {
		return this.database.jdbc().queryForMap("""
				select queue_ticker_max_count as count, queue_ticker_max_lag::text as lag,
				       queue_ticker_idle_period::text as idle, queue_ticker_paused as paused,
				       queue_rotation_period::text as rotation, queue_external_ticker as external,
				       queue_max_retries as retries
				from pgque.queue where queue_name = ?""", this.queue);
	}

}
