package io.pgque.engine;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import org.springframework.jdbc.datasource.SingleConnectionDataSource;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Sending now what is delivered later.
 */
@PgqueDatabase
class DelayedSendTests {

	private static final String ROW = "concat_ws('|', coalesce(type, '-'), coalesce(payload, '-'),"
			+ " coalesce(extra1, '-'), coalesce(extra2, '-'), coalesce(extra3, '-'), coalesce(extra4, '-'))";

	private static final AtomicInteger NUMBER = new AtomicInteger();

	TestDatabase database;

	private Engine engine;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.engine = new Engine(this.database.dataSource());
		this.database.update("delete from pgque.delayed_events");
		this.queue = "delayed-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'consumer')", this.queue, this.queue);
	}

	@Test
	void whatIsDueIsAnOrdinaryEvent() {
		assertThat(id("select pgque.send_at(?, 't', '{}'::jsonb, now())")).isEqualTo(1);
		assertThat(id("select pgque.send_at(?, 't', '{}'::jsonb, now() - interval '1 day')")).isEqualTo(2);
		assertThat(id("select pgque.send_at(?, 't', '{}'::jsonb, '-infinity')")).isEqualTo(3);
		assertThat(id("select pgque.send_after(?, 't', '{}'::jsonb, interval '0')")).isEqualTo(4);
		assertThat(id("select pgque.send_after(?, 't', '{}'::jsonb, interval '-1 second')")).isEqualTo(5);
		assertThat(waiting()).isZero();
		assertThat(received()).hasSize(5);
	}

	@Test
	void anEventIsDeliveredWhenItIsDueAndNotBefore() {
		String due = this.database.value(String.class,
				"select (clock_timestamp() + interval '400 milliseconds')::text");
		this.database.query("select pgque.send_at(?, 't', '{\"a\": 1}'::jsonb, ?::timestamptz)", this.queue, due);
		assertThat(waiting()).isOne();
		Awaitility.await().until(() -> {
			boolean overBefore = this.database.value(Boolean.class, "select clock_timestamp() >= ?::timestamptz", due);
			int delivered = deliver();
			boolean overAfter = this.database.value(Boolean.class, "select clock_timestamp() >= ?::timestamptz", due);
			assertThat(delivered).isBetween(overBefore ? 1 : 0, overAfter ? 1 : 0);
			return delivered == 1;
		});
		assertThat(waiting()).isZero();
		assertThat(deliver()).isZero();
		assertThat(received()).containsExactly("t|{\"a\": 1}|-|-|-|-");
	}

	@Test
	void aDelayCountsFromTheCall() throws Exception {
		try (Session session = Session.transactional(this.database)) {
			session.run("select pg_sleep(0.3)");
			session.value(Long.class, "select pgque.send_after(?, 't', 'x', interval '250 milliseconds')", this.queue);
			session.commit();
		}
		assertThat(this.database.value(Boolean.class,
				"select de_deliver_at > clock_timestamp() - interval '1 minute' from pgque.delayed_events"
						+ " where de_queue_name = ?",
				this.queue))
			.isTrue();
		assertThat(received()).isEmpty();
	}

	@Test
	void everyColumnIsKept() {
		String hour = "now() + interval '1 hour'";
		id("select pgque.send_at(?, 'a', '{\"b\":1,  \"a\":2}', " + hour + ")");
		id("select pgque.send_at(?, 'b', '{\"b\":1,  \"a\":2}'::jsonb, " + hour + ")");
		id("select pgque.send_at(?, 'c', 'text', " + hour + ", 'key')");
		id("select pgque.send_at(?, 'd', '{\"b\":1}'::jsonb, " + hour + ", 'key', 'second', 'third', 'headers')");
		id("select pgque.send_at(?, 'e', 'text', " + hour + ", null, i_extra4 => 'headers')");
		id("select pgque.send_after(?, 'f', 'text', interval '1 hour')");
		id("select pgque.send_after(?, 'g', '{\"b\":1}'::jsonb, interval '1 hour', 'key')");
		id("select pgque.send_after(?, null, null::text, interval '1 hour', null)");
		id("select pgque.send_at(i_queue => ?, i_type => 'h', i_payload => 'x', i_deliver_at => " + hour + ")");
		id("select pgque.send_after(i_queue => ?, i_type => 'i', i_payload => 'x', i_delay => interval '1 hour',"
				+ " i_partition_key => 'key')");
		assertThat(received()).isEmpty();
		letBeDue();
		assertThat(deliver()).isEqualTo(10);
		assertThat(received()).containsExactlyInAnyOrder("a|{\"b\":1,  \"a\":2}|-|-|-|-",
				"b|{\"a\": 2, \"b\": 1}|-|-|-|-", "c|text|key|-|-|-", "d|{\"b\": 1}|key|second|third|headers",
				"e|text|-|-|-|headers", "f|text|-|-|-|-", "g|{\"b\": 1}|key|-|-|-", "-|-|-|-|-|-", "h|x|-|-|-|-",
				"i|x|key|-|-|-");
	}

	@Test
	void eventsComeInTheOrderInWhichTheyAreDue() {
		for (int hours : List.of(5, 1, 3, 400, 2, 50_000)) {
			this.database.query("select pgque.send_after(?, 't', ?, make_interval(hours => ?))", this.queue,
					Integer.toString(hours), hours);
		}
		this.database.update("update pgque.delayed_events set de_deliver_at = de_deliver_at - interval '10 years'");
		assertThat(deliver()).isEqualTo(6);
		assertThat(received()).containsExactly("t|1|-|-|-|-", "t|2|-|-|-|-", "t|3|-|-|-|-", "t|5|-|-|-|-",
				"t|400|-|-|-|-", "t|50000|-|-|-|-");
	}

	@Test
	void argumentsAreChecked() {
		assertThat(failure("select pgque.send_at(?, 't', '{}'::jsonb, null)", this.queue).state()).isEqualTo("23502");
		assertThat(failure("select pgque.send_after(?, 't', 'x', null)", this.queue).state()).isEqualTo("23502");
		for (String when : List.of("now() + interval '1 hour'", "now()")) {
			assertThat(failure("select pgque.send_at('nowhere', 't', '{}'::jsonb, " + when + ")"))
				.isEqualTo(SqlError.raised("queue not found: nowhere"));
			assertThat(failure("select pgque.send_at(null, 't', '{}'::jsonb, " + when + ")"))
				.isEqualTo(SqlError.raised("queue not found: <NULL>"));
		}
		disableInsert(true);
		assertThat(failure("select pgque.send_after(?, 't', 'x', interval '1 hour')", this.queue))
			.isEqualTo(SqlError.raised("Insert into queue disallowed"));
		assertThat(waiting()).isZero();
	}

	@Test
	void whatIsRolledBackIsNotDelivered() throws Exception {
		try (Session session = Session.transactional(this.database)) {
			session.value(Long.class, "select pgque.send_after(?, 't', 'x', interval '1 hour')", this.queue);
			session.rollback();
		}
		assertThat(waiting()).isZero();
		assertThat(deliver()).isZero();
	}

	@Test
	void maintDelivers() {
		sendLater(1);
		letBeDue();
		this.database.query("select pgque.maint()");
		assertThat(received()).hasSize(1);
	}

	@Test
	void aTickerLoopDeliversAndTicks() {
		sendLater(1);
		letBeDue();
		this.engine.configure(this.queue, "ticker_max_lag", "1 ms");
		this.database.execute("call pgque.ticker_loop()");
		assertThat(this.database.values(String.class, "select payload from pgque.receive(?, 'consumer')", this.queue))
			.containsExactly("later");
	}

	@Test
	void aCancelledEventIsNotDelivered() {
		long id = id("select pgque.send_after(?, 't', 'x', interval '1 hour')");
		long other = id("select pgque.send_after(?, 't', 'y', interval '1 hour')");
		assertThat(cancel("another queue", id)).isZero();
		assertThat(cancel(this.queue, id)).isOne();
		assertThat(cancel(this.queue, id)).isZero();
		assertThat(cancel(this.queue, -1)).isZero();
		assertThat(this.database.value(Integer.class, "select pgque.cancel_delayed(null, null)")).isZero();
		letBeDue();
		assertThat(deliver()).isOne();
		assertThat(cancel(this.queue, other)).isZero();
		assertThat(received()).containsExactly("t|y|-|-|-|-");
	}

	@Test
	void anEventMayWaitForEver() {
		long id = id("select pgque.send_at(?, 't', 'x', 'infinity')");
		assertThat(deliver()).isZero();
		assertThat(cancel(this.queue, id)).isOne();
	}

	@Test
	void whatCannotBeDeliveredIsSetAsideAndBlocksNothing() {
		this.database.query("select pgque.create_queue('dropped'), pgque.create_queue('disabled')");
		this.database
			.query("select pgque.send_after('dropped', 't', 'x', interval '1 hour')" + " from generate_series(1, 3)");
		this.database.query("select pgque.send_after('disabled', 't', 'x', interval '1 hour')");
		sendLater(4);
		this.database.query("select pgque.drop_queue('dropped')");
		this.database.update("update pgque.queue set queue_disable_insert = true where queue_name = 'disabled'");
		letBeDue();
		assertThat(this.engine.warnings("select pgque.maint_deliver_delayed()")).containsExactlyInAnyOrder(
				"3 delayed events of queue \"dropped\" set aside: queue not found: dropped",
				"1 delayed events of queue \"disabled\" set aside: Insert into queue disallowed");
		assertThat(received()).hasSize(4);
		assertThat(deliver()).isZero();
		assertThat(this.database.query("""
				select de_queue_name as queue, de_error as error, count(*) as count
				from pgque.delayed_events
				where de_failed_at <= now() and de_deliver_at between now() + interval '9 minutes'
				                                              and now() + interval '11 minutes'
				group by 1, 2 order by 1""")).containsExactly(
				Map.of("queue", "disabled", "error", "Insert into queue disallowed", "count", 1L),
				Map.of("queue", "dropped", "error", "queue not found: dropped", "count", 3L));

		this.database.update("update pgque.queue set queue_disable_insert = false where queue_name = 'disabled'");
		letBeDue();
		assertThat(deliver()).isOne();
		assertThat(this.database.values(Long.class, "select de_id from pgque.delayed_events")).hasSize(3)
			.allSatisfy((id) -> assertThat(cancel("dropped", id)).isOne());
		this.database.query("select pgque.drop_queue('disabled')");
	}

	@Test
	void whatFailsAgainIsTriedAtGrowingDistances() {
		this.database
			.update("insert into pgque.delayed_events (de_queue_name, de_deliver_at) values ('nowhere', now())");
		deliver();
		this.database.update("update pgque.delayed_events set de_deliver_at = now(),"
				+ " de_failed_at = now() - interval '3 hours'");
		deliver();
		assertThat(nextAttempt()).isBetween(175, 185);
		this.database.update("update pgque.delayed_events set de_deliver_at = now(),"
				+ " de_failed_at = now() - interval '30 days'");
		deliver();
		assertThat(nextAttempt()).isBetween(1435, 1445);
	}

	@Test
	void aRowTheTableRefusesBlocksNoOther() {
		String table = this.database.value(String.class, "select pgque.current_event_table(?)", this.queue);
		this.database.execute("""
				create function refuse() returns trigger language plpgsql as $$
				begin
				    raise exception 'no poison here';
				end $$;
				create trigger refuse before insert on %s for each row when (new.ev_data = 'poison')
				execute function refuse()""".formatted(table));
		sendLater(2);
		this.database.query("select pgque.send_after(?, 't', 'poison', interval '1 hour')", this.queue);
		sendLater(2);
		letBeDue();
		assertThat(this.engine.warnings("select pgque.maint_deliver_delayed()")).containsExactly(
				"delayed events could not be delivered together, delivering one by one: no poison here",
				"1 delayed events of queue \"" + this.queue + "\" set aside: no poison here");
		assertThat(received()).hasSize(4);
		this.database.execute("drop function refuse() cascade");
		letBeDue();
		assertThat(deliver()).isOne();
		assertThat(received()).containsExactly("t|poison|-|-|-|-");
	}

	@Test
	void theViewIsReadAndWritten() {
		assertThat(this.database.query("""
				select column_name, data_type from information_schema.columns
				where table_schema = 'pgque' and table_name = 'delayed_events' order by ordinal_position""")
			.stream()
			.map((column) -> column.get("column_name") + " " + column.get("data_type"))).containsExactly("de_id bigint",
					"de_queue_name text", "de_deliver_at timestamp with time zone", "de_type text", "de_data text",
					"de_extra1 text", "de_extra2 text", "de_extra3 text", "de_extra4 text", "de_error text",
					"de_failed_at timestamp with time zone");
		assertThat(this.database.update("""
				insert into pgque.delayed_events (de_queue_name, de_deliver_at, de_type, de_data, de_extra1)
				values (?, now() + interval '1 day', 't', 'by hand', 'key')""", this.queue)).isOne();
		long id = this.database.value(Long.class, "select de_id from pgque.delayed_events");
		assertThat(this.database.update("update pgque.delayed_events set de_data = 'changed' where de_id = ?", id))
			.isOne();
		assertThat(deliver()).isZero();
		assertThat(this.database
			.update("update pgque.delayed_events set de_deliver_at = now() - interval '1 year' where de_id = ?", id))
			.isOne();
		assertThat(deliver()).isOne();
		assertThat(received()).containsExactly("t|changed|key|-|-|-");
		assertThat(this.database.update("delete from pgque.delayed_events where de_id = ?", id)).isZero();
		id = id("select pgque.send_after(?, 't', 'x', interval '1 hour')");
		assertThat(this.database.update("delete from pgque.delayed_events where de_id = ?", id)).isOne();
		assertThat(cancel(this.queue, id)).isZero();
	}

	@Test
	void nothingDueMeansNothingWritten() throws Exception {
		sendLater(50);
		deliver();
		try (Session session = Session.transactional(this.database)) {
			assertThat(session.value(Integer.class, "select pgque.maint_deliver_delayed()")).isZero();
			assertThat(session.value(Boolean.class, "select pg_current_xact_id_if_assigned() is null")).isTrue();
		}
	}

	@ParameterizedTest
	@ValueSource(strings = { "repeatable read", "serializable" })
	void aFrozenSnapshotIsRefused(String isolation) throws Exception {
		try (Session session = Session.transactional(this.database)) {
			session.run("set transaction isolation level " + isolation);
			Engine frozen = new Engine(new SingleConnectionDataSource(session.connection(), true));
			assertThat(frozen.error("select pgque.maint_deliver_delayed()").state()).isEqualTo("25000");
		}
	}

	@Test
	void writersDelayAndReadersRead() {
		Engine writer = new Engine(this.database.createLogin("pgque_writer").dataSource());
		Engine reader = new Engine(this.database.createLogin("pgque_reader").dataSource());
		Engine administrator = new Engine(this.database.createLogin("pgque_admin").dataSource());
		List<String> sends = List.of("select pgque.send_at(?, 't', '{}'::jsonb, now() + interval '1 hour')",
				"select pgque.send_at(?, 't', 'x', now() + interval '1 hour')",
				"select pgque.send_at(?, 't', '{}'::jsonb, now() + interval '1 hour', 'key')",
				"select pgque.send_at(?, 't', 'x', now() + interval '1 hour', 'key')",
				"select pgque.send_after(?, 't', '{}'::jsonb, interval '1 hour')",
				"select pgque.send_after(?, 't', 'x', interval '1 hour')");
		for (String send : sends) {
			Long id = writer.value(Long.class, send, this.queue);
			assertThat(writer.value(Integer.class, "select pgque.cancel_delayed(?, ?)", this.queue, id)).isOne();
			assertThat(reader.error(send, this.queue).state()).isEqualTo("42501");
		}
		sendLater(1);
		letBeDue();
		assertThat(reader.error("select pgque.cancel_delayed(?, 1)", this.queue).state()).isEqualTo("42501");
		assertThat(reader.rows("select * from pgque.delayed_events")).hasSize(1);
		assertThat(writer.error("select * from pgque.delayed_events").state()).isEqualTo("42501");
		for (Engine role : List.of(writer, reader)) {
			assertThat(role.error("select pgque.maint_deliver_delayed()").state()).isEqualTo("42501");
			assertThat(role.error("select * from pgque_internal.delayed").state()).isEqualTo("42501");
		}
		assertThat(administrator.value(Integer.class, "select pgque.maint_deliver_delayed()")).isOne();
	}

	private void sendLater(int count) {
		this.database.query("select pgque.send_after(?, 't', 'later', interval '1 hour') from generate_series(1, ?)",
				this.queue, count);
	}

	private void letBeDue() {
		this.database.update("update pgque.delayed_events set de_deliver_at = now() - interval '1 second'");
	}

	private int deliver() {
		return this.database.value(Integer.class, "select pgque.maint_deliver_delayed()");
	}

	private int cancel(String queue, long id) {
		return this.database.value(Integer.class, "select pgque.cancel_delayed(?, ?)", queue, id);
	}

	private int nextAttempt() {
		return this.database.value(Integer.class, "select round(extract(epoch from de_deliver_at - now()) / 60)::int"
				+ " from pgque.delayed_events where de_error = 'queue not found: nowhere'");
	}

	private void disableInsert(boolean disabled) {
		this.database.update("update pgque.queue set queue_disable_insert = ? where queue_name = ?", disabled,
				this.queue);
	}

	private long waiting() {
		return this.database.value(Long.class, "select count(*) from pgque.delayed_events where de_queue_name = ?",
				this.queue);
	}

	private List<String> received() {
		this.database.query("select * from pgque.tick_now()");
		List<String> rows = this.database.values(String.class,
				"select " + ROW + " from pgque.receive_batch(?, 'consumer', 10000, 1000000) order by msg_id",
				this.queue);
		this.database
			.query("select pgque.ack(sub_batch) from pgque.subscription join pgque.queue on queue_id = sub_queue"
					+ " where queue_name = ? and sub_batch is not null", this.queue);
		return rows;
	}

	private long id(String sql) {
		return this.database.value(Long.class, sql, this.queue);
	}

	private SqlError failure(String sql, Object... arguments) {
		return this.engine.error(sql, arguments);
	}

}
