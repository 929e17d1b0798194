package io.pgque.engine;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * One event for a key.
 */
@PgqueDatabase
class IdempotentSendTests {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	TestDatabase database;

	private Engine engine;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.engine = new Engine(this.database.dataSource());
		this.queue = "idempotent-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'consumer')", this.queue, this.queue);
	}

	@Test
	void firstUseSendsAndARepeatDoesNot() {
		Map<String, Object> first = row("select * from pgque.send_idem(?, 'paid', 'text', 'key')");
		assertThat(first).containsExactly(Map.entry("event_id", 1L), Map.entry("deduped", false));
		assertThat(row("select * from pgque.send_idem(?, 'other', 'other', 'key')"))
			.containsExactly(Map.entry("event_id", 1L), Map.entry("deduped", true));
		assertThat(received("type || ' ' || payload")).containsExactly("paid text");
	}

	@Test
	void keysStandInTheExtraColumns() {
		row("select * from pgque.send_idem(?, 'paid', 'text', 'key', '1 minute', 'partition')");
		row("select * from pgque.send_idem(?, 'paid', 'text', 'another key')");
		assertThat(received("concat_ws('|', coalesce(extra1, '-'), extra2, extra3, extra4)"))
			.containsExactly("partition|key", "-|another key");
	}

	@Test
	void textIsKeptAndJsonIsCanonical() {
		row("select * from pgque.send_idem(?, 't', '{\"b\":1,  \"a\":2}', 'literal')");
		row("select * from pgque.send_idem(?, 't', '{\"b\":1,  \"a\":2}'::text, 'text')");
		row("select * from pgque.send_idem(?, 't', '{\"b\":1,  \"a\":2}'::jsonb, 'json')");
		row("select * from pgque.send_idem(?, null, null::text, 'nothing')");
		assertThat(received("coalesce(payload, type, 'nothing')")).containsExactly("{\"b\":1,  \"a\":2}",
				"{\"b\":1,  \"a\":2}", "{\"a\": 2, \"b\": 1}", "nothing");
	}

	@Test
	void argumentsHaveNames() {
		assertThat(row("""
				select * from pgque.send_idem(i_queue => ?, i_type => 't', i_payload => '{}'::jsonb, i_idem_key => 'k',
				                              i_ttl => interval '1 day', i_partition_key => 'p')"""))
			.containsEntry("deduped", false);
		assertThat(row("""
				select * from pgque.send_idem_checked(i_queue => ?, i_type => 't', i_payload => '{}', i_idem_key => 'k',
				                                      i_ttl => interval '1 day', i_partition_key => 'p')"""))
			.containsEntry("deduped", true);
	}

	@Test
	void aMismatchIsReportedOnRequest() {
		String send = "select * from pgque.send_idem_checked(?, %s, %s, 'key')";
		assertThat(row(send.formatted("'t'", "'{\"a\": 1}'"))).containsExactly(Map.entry("event_id", 1L),
				Map.entry("deduped", false), Map.entry("mismatch", false));
		assertThat(row(send.formatted("'t'", "'{\"a\": 1}'"))).containsExactly(Map.entry("event_id", 1L),
				Map.entry("deduped", true), Map.entry("mismatch", false));
		// The same event in the other form.
		assertThat(row(send.formatted("'t'", "'{\"a\":1}'::jsonb"))).containsEntry("mismatch", false);
		for (String other : List.of("'u', '{\"a\": 1}'", "'t', '{\"a\": 2}'", "null, '{\"a\": 1}'", "'t', null::text",
				"'t{', '\"a\": 1}'")) {
			assertThat(row("select * from pgque.send_idem_checked(?, " + other + ", 'key')")).as(other)
				.containsEntry("deduped", true)
				.containsEntry("mismatch", true);
		}
		assertThat(row("select * from pgque.send_idem(?, 't', 'plain', 'plain')")).containsEntry("deduped", false);
		assertThat(row("select * from pgque.send_idem_checked(?, 't', 'checked', 'plain')")).containsEntry("mismatch",
				true);
		assertThat(received("payload")).hasSize(2);
	}

	@Test
	void aKeyWhoseContentIsUnknownMatches() {
		this.database.update(
				"insert into pgque.idem (queue_id, idem_key, event_id, expires_at)"
						+ " select queue_id, 'by hand', 77, 'infinity' from pgque.queue where queue_name = ?",
				this.queue);
		assertThat(row("select * from pgque.send_idem_checked(?, 't', 'x', 'by hand')"))
			.containsExactly(Map.entry("event_id", 77L), Map.entry("deduped", true), Map.entry("mismatch", false));
	}

	@Test
	void keysBelongToTheirQueue() {
		this.database.query("select pgque.create_queue('elsewhere')");
		row("select * from pgque.send_idem(?, 't', 'x', 'key')");
		assertThat(this.database.query("select deduped from pgque.send_idem('elsewhere', 't', 'x', 'key')"))
			.containsExactly(Map.of("deduped", false));
	}

	@Test
	void anExpiredKeyIsANewOne() {
		row("select * from pgque.send_idem(?, 't', 'first', 'key', '1 hour')");
		expire();
		assertThat(row("select * from pgque.send_idem_checked(?, 't', 'second', 'key', '2 hours')"))
			.containsExactly(Map.entry("event_id", 2L), Map.entry("deduped", false), Map.entry("mismatch", false));
		assertThat(this.database.value(Boolean.class,
				"select expires_at > now() + interval '110 minutes'"
						+ " from pgque.idem join pgque.queue using (queue_id) where queue_name = ?",
				this.queue))
			.isTrue();
		assertThat(row("select * from pgque.send_idem_checked(?, 't', 'second', 'key')"))
			.containsExactly(Map.entry("event_id", 2L), Map.entry("deduped", true), Map.entry("mismatch", false));
		assertThat(received("payload")).containsExactly("first", "second");
	}

	@Test
	void aRepeatDoesNotProlongTheKey() {
		row("select * from pgque.send_idem(?, 't', 'x', 'key', '1 hour')");
		String expiry = "select expires_at::text from pgque.idem join pgque.queue using (queue_id) where queue_name = ?";
		String before = this.database.value(String.class, expiry, this.queue);
		row("select * from pgque.send_idem(?, 't', 'x', 'key', '1 day')");
		assertThat(this.database.value(String.class, expiry, this.queue)).isEqualTo(before);
	}

	@Test
	void aRepeatWritesNothing() throws Exception {
		row("select * from pgque.send_idem(?, 't', 'x', 'key')");
		try (Session session = Session.transactional(this.database)) {
			session.value(Boolean.class, "select deduped from pgque.send_idem(?, 't', 'x', 'key')", this.queue);
			assertThat(session.value(Boolean.class, "select pg_current_xact_id_if_assigned() is null")).isTrue();
		}
	}

	@Test
	void argumentsAreChecked() {
		assertThat(failure("select * from pgque.send_idem(?, 't', 'x', null)", this.queue))
			.isEqualTo(SqlError.raised("idem_key must not be null"));
		for (String ttl : List.of("null", "interval '0'", "interval '-1 second'")) {
			assertThat(failure("select * from pgque.send_idem(?, 't', 'x', 'key', " + ttl + ")", this.queue)).as(ttl)
				.isEqualTo(SqlError.raised("ttl must be a positive interval"));
		}
		assertThat(failure("select * from pgque.send_idem('nowhere', 't', 'x', 'key')"))
			.isEqualTo(SqlError.raised("queue not found: nowhere"));
		assertThat(failure("select * from pgque.send_idem(null, 't', 'x', 'key')"))
			.isEqualTo(SqlError.raised("queue not found: <NULL>"));
		// Not compressible, so that it is too long for an index.
		assertThat(failure("select * from pgque.send_idem(?, 't', 'x',"
				+ " (select string_agg(md5(n::text), '') from generate_series(1, 200) n))", this.queue)
			.state()).isEqualTo("54000");
		assertThat(row("select * from pgque.send_idem(?, 't', 'x', '')")).containsEntry("deduped", false);
	}

	@Test
	void aFailedSendLeavesNoKey() {
		disableInsert(true);
		assertThat(failure("select * from pgque.send_idem(?, 't', 'x', 'key')", this.queue))
			.isEqualTo(SqlError.raised("Insert into queue disallowed"));
		assertThat(this.database.value(Long.class,
				"select count(*) from pgque.idem where idem_key = 'key'"
						+ " and queue_id = (select queue_id from pgque.queue where queue_name = ?)",
				this.queue))
			.isZero();
		disableInsert(false);
		assertThat(row("select * from pgque.send_idem(?, 't', 'x', 'key')")).containsEntry("deduped", false);
		disableInsert(true);
		assertThat(row("select * from pgque.send_idem(?, 't', 'x', 'key')")).containsEntry("deduped", true);
	}

	@Test
	void maintRemovesExpiredKeysHoweverMany() {
		row("select * from pgque.send_idem(?, 't', 'x', 'live')");
		assertThat(this.database.value(String.class,
				"select queue_extra_maint::text from pgque.queue where queue_name = ?", this.queue))
			.isEqualTo("{pgque.maint_idem}");
		addExpired(25_000);
		this.database.query("select pgque.maint()");
		assertThat(keys()).containsExactly("live");
	}

	@Test
	void aHookOfTheQueueStaysBesideOurs() {
		this.database.update("update pgque.queue set queue_extra_maint = '{other}' where queue_name = ?", this.queue);
		row("select * from pgque.send_idem(?, 't', 'x', 'one')");
		row("select * from pgque.send_idem(?, 't', 'x', 'two')");
		assertThat(this.database.value(String.class,
				"select queue_extra_maint::text from pgque.queue where queue_name = ?", this.queue))
			.isEqualTo("{other,pgque.maint_idem}");
	}

	@Test
	void expiredKeysGoInChunks() {
		addExpired(10_001);
		assertThat(this.database.value(Integer.class, "select pgque.maint_idem('nowhere')")).isZero();
		assertThat(this.database.value(Integer.class, "select pgque.maint_idem(?)", this.queue)).isOne();
		assertThat(keys()).hasSize(1);
		assertThat(this.database.value(Integer.class, "select pgque.maint_idem(?)", this.queue)).isZero();
		assertThat(keys()).isEmpty();
		addExpired(10_000);
		row("select * from pgque.send_idem(?, 't', 'x', 'live')");
		assertThat(this.database.value(Integer.class, "select pgque.maint_idem()")).isOne();
		assertThat(this.database.value(Integer.class, "select pgque.maint_idem()")).isZero();
		assertThat(keys()).containsExactly("live");
	}

	@Test
	void keysGoWithTheirQueue() {
		row("select * from pgque.send_idem(?, 't', 'x', 'goes with it')");
		this.database.query("select pgque.drop_queue(?, true)", this.queue);
		assertThat(this.database.value(Long.class, "select count(*) from pgque.idem where idem_key = 'goes with it'"))
			.isZero();
	}

	@Test
	void writersSendAndNobodyReadsTheKeys() {
		Engine writer = new Engine(this.database.createLogin("pgque_writer").dataSource());
		Engine reader = new Engine(this.database.createLogin("pgque_reader").dataSource());
		Engine administrator = new Engine(this.database.createLogin("pgque_admin").dataSource());
		String send = "select deduped from pgque.send_idem(?, 't', 'x', ?)";
		String check = "select deduped from pgque.send_idem_checked(?, 't', '{}'::jsonb, ?)";
		assertThat(writer.value(Boolean.class, send, this.queue, "writer")).isFalse();
		assertThat(writer.value(Boolean.class, check, this.queue, "writer")).isTrue();
		assertThat(administrator.value(Boolean.class, send, this.queue, "administrator")).isFalse();
		assertThat(administrator.value(Integer.class, "select pgque.maint_idem() + pgque.maint_idem(?)", this.queue))
			.isZero();
		assertThat(reader.error(send, this.queue, "reader").state()).isEqualTo("42501");
		assertThat(reader.error(check, this.queue, "reader").state()).isEqualTo("42501");
		for (Engine role : List.of(writer, reader)) {
			assertThat(role.error("select pgque.maint_idem()").state()).isEqualTo("42501");
			assertThat(role.error("select pgque.maint_idem('x')").state()).isEqualTo("42501");
		}
		for (Engine role : List.of(writer, reader, administrator)) {
			assertThat(role.error("select * from pgque.idem").state()).isEqualTo("42501");
		}
	}

	@ParameterizedTest
	@ValueSource(strings = { "send_idem", "send_idem_checked" })
	void oneStatementMaySendAKeyTwice(String function) {
		assertThat(
				this.database.values(Boolean.class,
						"select s.deduped from generate_series(1, 3) n, lateral pgque." + function
								+ "(?, 't', 'x' || n * 0, 'key' || n * 0) s",
						this.queue))
			.containsExactly(false, true, true);
	}

	private void disableInsert(boolean disabled) {
		this.database.update("update pgque.queue set queue_disable_insert = ? where queue_name = ?", disabled,
				this.queue);
	}

	private void expire() {
		this.database.update("update pgque.idem set expires_at = now() - interval '1 second'");
	}

	private void addExpired(int count) {
		this.database.update("insert into pgque.idem (queue_id, idem_key, event_id, expires_at)"
				+ " select queue_id, 'old ' || n, n, now() from pgque.queue, generate_series(1, ?) n"
				+ " where queue_name = ?", count, this.queue);
	}

	private List<String> keys() {
		return this.database.values(String.class,
				"select idem_key from pgque.idem join pgque.queue using (queue_id) where queue_name = ?", this.queue);
	}

	private List<String> received(String expression) {
		this.database.query("select * from pgque.tick_now()");
		return this.database.values(String.class,
				"select " + expression + " from pgque.receive_batch(?, 'consumer', 1000, 1000000) order by msg_id",
				this.queue);
	}

	private Map<String, Object> row(String sql) {
		return this.database.jdbc().queryForMap(sql, this.queue);
	}

	private SqlError failure(String sql, Object... arguments) {
		return this.engine.error(sql, arguments);
	}

}
