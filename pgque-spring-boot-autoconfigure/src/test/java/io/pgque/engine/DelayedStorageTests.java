package io.pgque.engine;

import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * What waiting events leave behind, and what the marks of delivery are worth.
 */
@PgqueDatabase
class DelayedStorageTests {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	private static final Pattern BUFFERS = Pattern.compile("Buffers: shared hit=(\\d+)");

	TestDatabase database;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.database.execute("truncate pgque_internal.delayed");
		this.queue = "delayed-storage-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'consumer')", this.queue, this.queue);
	}

	@Test
	void theSlotIsThatOfTheNarrowestCell() {
		String slot = "select pgque_internal.delay_slot('epoch'::timestamptz + ?::interval,"
				+ " 'epoch'::timestamptz + ?::interval)";
		assertThat(this.database.value(Integer.class, slot, "1 second", "0")).isEqualTo(0);
		assertThat(this.database.value(Integer.class, slot, "29 minutes 59 seconds", "0")).isEqualTo(1);
		assertThat(this.database.value(Integer.class, slot, "44 minutes", "15 minutes")).isEqualTo(2);
		assertThat(this.database.value(Integer.class, slot, "30 minutes", "0")).isEqualTo(3);
		assertThat(this.database.value(Integer.class, slot, "6 hours", "0")).isEqualTo(6);
		assertThat(this.database.value(Integer.class, slot, "72 hours", "0")).isEqualTo(9);
		assertThat(this.database.value(Integer.class, slot, "36 days", "0")).isEqualTo(12);
		assertThat(this.database.value(Integer.class, slot, "431 days", "0")).isEqualTo(13);
		assertThat(this.database.value(Integer.class, slot, "432 days", "0")).isEqualTo(15);
		assertThat(this.database.value(Integer.class, "select pgque_internal.delay_slot('infinity', now())"))
			.isEqualTo(15);
		assertThat(this.database.value(Integer.class, slot, "-1000 days", "20 minutes")).isEqualTo(1);
		assertThat(this.database.value(Integer.class, slot, "-1000 days", "-999 days")).isBetween(0, 14);
	}

	@Test
	void noSlotThatTakesEventsIsPast() {
		assertThat(this.database.value(Long.class, """
				select count(*)
				from generate_series('2030-01-01'::timestamptz, '2034-01-01', '13 hours 7 minutes') t (now),
				     generate_series(0, 15) n
				where pgque_internal.delay_slot(t.now + 4 ^ n * interval '1 second', t.now)
				      = any (pgque_internal.past_delay_slots(t.now))""")).isZero();
	}

	@Test
	void aSlotWhoseEventsAreSentIsEmptied() {
		send(10_000, "1 hour", "x".repeat(200));
		letBeDue("10000");
		assertThat(bytes()).isGreaterThan(1_000_000);
		deliver();
		this.database.query("select pgque.maint()");
		assertThat(bytes()).isZero();
		assertThat(received()).isEqualTo(10_000);
	}

	@Test
	void aSlotInWhichAnEventWaitsIsNot() {
		send(10_000, "1 hour", "x".repeat(200));
		letBeDue("9999");
		assertThat(deliver()).isEqualTo(9999);
		this.database.query("select pgque.maint()");
		assertThat(waiting()).isOne();
		letBeDue("1");
		assertThat(deliver()).isOne();
		assertThat(received()).isEqualTo(10_000);
	}

	@Test
	void cancelledEventsAreGoneFromTheirSlotToo() {
		send(10_000, "1 hour", "x".repeat(200));
		this.database.query("select pgque.cancel_delayed(?, de_id) from pgque.delayed_events", this.queue);
		this.database.query("select pgque.maint()");
		assertThat(bytes()).isZero();
	}

	@Test
	void aSmallSlotIsEmptiedWhenItsTimeIsOver() {
		send(1, "1 hour", "x");
		this.database.update("delete from pgque_internal.delayed");
		this.database.update("""
				insert into pgque_internal.delayed (de_id, de_slot, de_deliver_at, de_queue_name)
				select s, s, now(), ? from unnest(pgque_internal.past_delay_slots(now()) || array[15, 16]::int2[]) s""",
				this.queue);
		assertThat(deliver()).isEqualTo(7);
		assertThat(bytes()).isGreaterThan(7 * 8000);
		this.database.query("select pgque.maint()");
		// What remains is the page of the event that was cancelled from a slot in use.
		assertThat(bytes()).isLessThanOrEqualTo(8192);
	}

	@Test
	void aHeldSnapshotMakesNothingSlowerAndKeepsNoSpace() throws Exception {
		send(100, "1 hour", "first");
		letBeDue("100");
		deliver();
		send(1, "1 hour", "waits");
		deliver();
		long before = buffersOfAPass();
		try (Session holder = Session.repeatableRead(this.database)) {
			holder.value(Long.class, "select count(*) from pgque.queue");
			for (int i = 0; i < 30; i++) {
				this.database.query("select pgque.send_at(?, 't', repeat('x', 100), clock_timestamp()"
						+ " + interval '50 milliseconds') from generate_series(1, 700)", this.queue);
				this.database.query("select pg_sleep(0.06)");
				assertThat(deliver()).isEqualTo(700);
			}
			// A walk through what was sent would touch a buffer for each of the 21,000
			// rows.
			assertThat(buffersOfAPass()).isLessThan(before + 2_100);
			this.database.query("select pgque.maint()");
			assertThat(bytes()).isLessThan(100_000);
			holder.commit();
		}
		assertThat(received()).isEqualTo(100 + 30 * 700);
	}

	@Test
	void eventsCancelledUnderAHeldSnapshotAreNotWalkedThroughForEver() throws Exception {
		String slot = this.database.value(String.class,
				"select pgque_internal.delay_slot(now() + interval '3 seconds'," + " now())::text");
		send(1, "1 hour", "waits");
		deliver();
		long before = buffersOfAPass();
		try (Session holder = Session.repeatableRead(this.database)) {
			holder.value(Long.class, "select count(*) from pgque.queue");
			this.database
				.query("select pgque.cancel_delayed(?, pgque.send_at(?, 't', repeat('x', 200), clock_timestamp()"
						+ " + interval '3 seconds')) from generate_series(1, 9000)", this.queue, this.queue);
			// One that waits in the same slot keeps it from being emptied.
			this.database.update("insert into pgque_internal.delayed (de_id, de_slot, de_deliver_at, de_queue_name)"
					+ " values (0, " + slot + ", now() + interval '1 hour', ?)", this.queue);
			this.database.query("select pg_sleep(3.1)");
			this.database.query("select pgque.maint()");
			assertThat(bytes()).isGreaterThan(1_000_000);
			assertThat(buffersOfAPass()).isLessThan(before + 300);
			holder.commit();
		}
	}

	@Test
	void manyNewEventsAreLookedAtOnce() {
		send(1, "1 hour", "waits");
		deliver();
		this.database.query("select pgque.maint()");
		send(10_000, "1 day", "much later");
		assertThat(deliver()).isZero();
		assertThat(this.database.value(Long.class, "select mark_seq from pgque_internal.newest_mark()"))
			.isEqualTo(this.database.value(Long.class, "select last_value from pgque.delayed_events_de_id_seq"));
		assertThat(buffersOfAPass()).isLessThan(600);
	}

	@Test
	void aPassOfManyEndsWhereTheNextBegins() {
		this.database.query("select pgque.send_at(?, 't', 'x', now() + n / 2 * interval '1 hour')"
				+ " from generate_series(2, 9) n", this.queue);
		String look = "select cardinality(ids) || ' until ' || round(extract(epoch from until - now()) / 3600)"
				+ " from pgque_internal.due_delayed(null, now() + interval '1 day', pg_current_snapshot(), ?)";
		assertThat(this.database.value(String.class, look, 3)).isEqualTo("3 until 2");
		assertThat(this.database.value(String.class, look, 4)).isEqualTo("4 until 2");
		assertThat(this.database.value(String.class, look, 8)).isEqualTo("8 until 4");
		assertThat(this.database.value(String.class, look, 9)).isEqualTo("8 until 24");
	}

	@Test
	void aLostMarkLosesAndDoublesNothing() {
		send(10, "1 hour", "x");
		letBeDue("5");
		assertThat(deliver()).isEqualTo(5);
		this.database.execute("truncate pgque_internal.delay_mark");
		assertThat(deliver()).isZero();
		letBeDue("5");
		assertThat(deliver()).isEqualTo(5);
		assertThat(received()).isEqualTo(10);
	}

	@Test
	void aMarkOfAnotherClusterIsNotTrusted() {
		send(10, "1 hour", "x");
		// As after a restore into a cluster with lower transaction ids.
		this.database.update("insert into pgque_internal.delay_mark (mark_due, mark_snapshot, mark_seq, mark_left)"
				+ " values (now() + interval '1 day', '900000000000:900000000000:', 1, '{}')");
		assertThat(deliver()).isZero();
		letBeDue("10");
		assertThat(deliver()).isEqualTo(10);
		assertThat(this.database.value(Boolean.class, "select mark_due < now() from pgque_internal.newest_mark()"))
			.isTrue();
	}

	@Test
	void aClockThatIsSetBackLosesNothing() {
		send(2, "1 hour", "x");
		deliver();
		// The clock stood an hour ahead.
		this.database.update("insert into pgque_internal.delay_mark (mark_due, mark_snapshot, mark_seq, mark_left)"
				+ " select now() + interval '59 minutes', pg_current_snapshot(), mark_seq, '{}'"
				+ " from pgque_internal.newest_mark()");
		send(1, "30 minutes", "sent after the clock was set back");
		assertThat(deliver()).isZero();
		letBeDue("1");
		assertThat(deliver()).isOne();
		this.database.query("select pgque.send_after(?, 't', 'soon', interval '100 milliseconds')", this.queue);
		this.database.query("select pg_sleep(0.11)");
		assertThat(deliver()).isOne();
		assertThat(waiting()).isEqualTo(2);
	}

	@Test
	void oldMarksAreForgotten() {
		send(1, "1 hour", "x");
		this.database.update("insert into pgque_internal.delay_mark (mark_due, mark_snapshot, mark_seq, mark_left)"
				+ " select now(), pg_current_snapshot(), n, '{}' from generate_series(1, 20000) n");
		this.database.query("select pgque.maint()");
		assertThat(this.database.value(Long.class, "select count(*) from pgque_internal.delay_mark")).isOne();
		letBeDue("1");
		assertThat(deliver()).isOne();
	}

	private void send(int count, String delay, String payload) {
		this.database.query("select pgque.send_after(?, 't', ?, ?::interval) from generate_series(1, ?)", this.queue,
				payload, delay, count);
	}

	private void letBeDue(String limit) {
		this.database
			.update("update pgque.delayed_events set de_deliver_at = now() - interval '1 second' where de_id in"
					+ " (select de_id from pgque.delayed_events order by de_id limit " + limit + ")");
	}

	private int deliver() {
		return this.database.value(Integer.class, "select pgque.maint_deliver_delayed()");
	}

	private long waiting() {
		return this.database.value(Long.class, "select count(*) from pgque.delayed_events where de_queue_name = ?",
				this.queue);
	}

	private long bytes() {
		return this.database.value(Long.class, "select sum(pg_relation_size(inhrelid)) from pg_inherits"
				+ " where inhparent = 'pgque_internal.delayed'::regclass");
	}

	private long received() {
		this.database.query("select * from pgque.tick_now()");
		return this.database.value(Long.class,
				"select count(*) from pgque.receive_batch(?, 'consumer', 100000, 100000000)", this.queue);
	}

	/**
	 * How many pages a pass that finds nothing looks at, all that it calls included, once
	 * the session knows the tables.
	 */
	private long buffersOfAPass() {
		List<String> plans = List.of();
		try (Session session = Session.autoCommit(this.database)) {
			for (int i = 0; i < 3; i++) {
				plans = session.column(String.class,
						"explain (analyze, buffers, timing off)" + " select pgque.maint_deliver_delayed()");
			}
		}
		catch (SQLException ex) {
			throw new IllegalStateException(ex);
		}
		return plans.stream()
			.map(BUFFERS::matcher)
			.filter(Matcher::find)
			.mapToLong((buffers) -> Long.parseLong(buffers.group(1)))
			.max()
			.orElse(0);
	}

}
