package io.pgque.engine;

import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.List;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

import io.pgque.engine.Engine.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for the exact tickers, and for the notification of every tick.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class TickNowTests {

	private static final String NAMED = "select * from pgque.tick_now(?::text[])";

	private static final String ALL = "select * from pgque.tick_now()";

	private final TestDatabase database;

	private final Engine engine;

	TickNowTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@BeforeEach
	void queuesOfOthersRest() {
		this.engine.update("update pgque.queue set queue_ticker_paused = true");
	}

	@Test
	void namedQueuesWithNewEventsAreTicked() {
		String first = this.engine.queue();
		String second = this.engine.queue();
		String idle = this.engine.queue();
		String notNamed = this.engine.queue();
		for (String queue : List.of(first, second, notNamed)) {
			this.engine.send(queue, "x");
		}
		assertThat(this.engine.rows(NAMED, names(first, second, idle))).containsExactlyInAnyOrder(
				tuple(first, 2L, "ticked", "no consumer"), tuple(second, 2L, "ticked", "no consumer"));
		assertThat(this.engine.rows(NAMED, names(first, second, idle))).isEmpty();
		assertThat(this.engine.newestTick(notNamed)).isEqualTo(1);
	}

	@Test
	void allQueuesWithNewEventsAreTicked() {
		String first = this.engine.queue();
		String second = this.engine.queue();
		this.engine.queue();
		this.engine.send(first, "x");
		this.engine.send(second, "x");
		assertThat(this.engine.rows(ALL)).containsExactly(tuple(first, 2L, "ticked", "no consumer"),
				tuple(second, 2L, "ticked", "no consumer"));
		assertThat(this.engine.rows(ALL)).isEmpty();
	}

	@Test
	void ticksTellWhetherAnybodyIsSubscribed() {
		String read = this.engine.queue();
		String unread = this.engine.queue();
		this.database.query("select pgque.subscribe(?, 'reader')", read);
		for (String statement : List.of(NAMED, ALL)) {
			this.engine.send(read, "x");
			this.engine.send(unread, "x");
			List<Tuple> rows = statement.equals(NAMED) ? this.engine.rows(NAMED, names(read, unread))
					: this.engine.rows(ALL);
			assertThat(rows).extracting((row) -> row.toList().get(0), (row) -> row.toList().get(3))
				.containsExactlyInAnyOrder(tuple(read, null), tuple(unread, "no consumer"));
		}
	}

	@Test
	void thresholdsDoNotMatter() {
		String queue = this.engine.queue();
		this.engine.configure(queue, "ticker_max_lag", "1 hour");
		for (long tick = 2; tick <= 4; tick++) {
			this.engine.send(queue, "x");
			assertThat(this.engine.tick(queue)).isEqualTo(tick);
		}
		this.engine.age(queue, "2 hours");
		assertThat(this.engine.tick(queue)).as("nothing new").isNull();
	}

	@Test
	void rolledBackEventsAreNotNew() {
		String queue = this.engine.queue();
		this.engine.rolledBack(() -> this.engine.send(queue, 3));
		assertThat(this.engine.rows(NAMED, names(queue))).isEmpty();
		assertThat(this.engine.rows(ALL)).isEmpty();
	}

	@Test
	void forcedSequenceIsNotNew() {
		String queue = this.engine.queue();
		this.engine.value(Long.class, "select pgque.force_next_tick(?)", queue);
		assertThat(this.engine.rows(NAMED, names(queue))).isEmpty();
		assertThat(this.engine.rows(ALL)).isEmpty();
	}

	@Test
	void ownEventsAreNotVisibleYet() {
		String queue = this.engine.queue();
		this.engine.inTransaction(() -> {
			this.engine.send(queue, "x");
			this.database.execute("create table if not exists public.other ()");
			assertThat(this.engine.rows(NAMED, names(queue))).isEmpty();
			assertThat(this.engine.rows(ALL)).isEmpty();
		});
		assertThat(this.engine.rows(ALL)).hasSize(1);
	}

	@Test
	void pausedAndExternalQueuesAreLeftAlone() {
		String paused = this.engine.queue();
		this.engine.configure(paused, "ticker_paused", "true");
		String external = this.engine.queue();
		this.engine.configure(external, "external_ticker", "true");
		this.engine.send(paused, "x");
		this.engine.send(external, "x");
		assertThat(this.engine.rows(NAMED, names(paused, external))).isEmpty();
		assertThat(this.engine.rows(ALL)).isEmpty();
	}

	@Test
	void unknownQueueFails() {
		String queue = this.engine.queue();
		this.engine.send(queue, "x");
		assertThat(this.engine.rows(NAMED, names("nowhere", queue, "nowhere"))).containsExactlyInAnyOrder(
				tuple(queue, 2L, "ticked", "no consumer"),
				tuple("nowhere", null, "failed", "queue not found: nowhere"));
	}

	@Test
	void noNamesAreNoQueues() {
		this.engine.send(this.engine.queue(), "x");
		assertThat(this.engine.rows(NAMED, "{}")).isEmpty();
		assertThat(this.engine.rows(NAMED, (String) null)).isEmpty();
	}

	@Test
	void oneNameTwiceIsOneTick() {
		String queue = this.engine.queue();
		this.engine.send(queue, "x");
		assertThat(this.engine.rows(NAMED, names(queue, queue)))
			.containsExactly(tuple(queue, 2L, "ticked", "no consumer"));
	}

	@Test
	void busyQueueIsTold() throws SQLException {
		String queue = this.engine.queue();
		String other = this.engine.queue();
		this.engine.send(queue, "x");
		this.engine.send(other, "x");
		try (Session holder = Session.transactional(this.database)) {
			holder.run("select from pgque.queue where queue_name = '" + queue + "' for update");
			assertThat(this.engine.rows(NAMED, names(queue))).containsExactly(tuple(queue, null, "busy", null));
			assertThat(this.engine.rows(ALL)).containsExactlyInAnyOrder(tuple(queue, null, "busy", null),
					tuple(other, 2L, "ticked", "no consumer"));
			holder.connection().rollback();
		}
		assertThat(this.engine.rows(ALL)).containsExactly(tuple(queue, 2L, "ticked", "no consumer"));
	}

	@Test
	void oneFailingQueueStopsNoOther() {
		String broken = this.engine.queue();
		String fine = this.engine.queue();
		for (String call : List.of(ALL, NAMED)) {
			this.engine.send(broken, "x");
			this.engine.send(fine, "x");
			this.engine.update("update pgque.tick set tick_snapshot = '9999999999:9999999999:' where tick_queue = ?",
					this.engine.idOf(broken));
			Object[] arguments = call.equals(ALL) ? new Object[0] : new Object[] { names(broken, fine) };
			assertThat(this.engine.rows(call, arguments)).hasSize(2)
				.anySatisfy((row) -> assertThat(row.toList().subList(0, 3)).containsExactly(fine,
						this.engine.newestTick(fine), "ticked"))
				.anySatisfy((row) -> {
					assertThat(row.toList().subList(0, 3)).containsExactly(broken, null, "failed");
					assertThat(row.toList().get(3)).asString().contains("Invalid PgQ state");
				});
		}
	}

	@Test
	void idlePassWritesNothing() {
		String queue = this.engine.queue();
		this.engine.send(queue, "x");
		this.engine.tick(queue);
		this.engine.inTransaction(() -> {
			assertThat(this.engine.rows(ALL)).isEmpty();
			assertThat(this.engine.value(String.class, "select pg_current_xact_id_if_assigned()::text")).isNull();
		});
	}

	@Test
	void commitThatCameLateIsCoveredByTheNextTick() throws SQLException {
		String queue = this.engine.queue("c");
		for (String call : List.of(ALL, NAMED)) {
			Object[] arguments = call.equals(ALL) ? new Object[0] : new Object[] { names(queue) };
			try (Session sender = Session.transactional(this.database)) {
				long late = sender.send(queue, "late");
				this.engine.send(queue, "early");
				assertThat(this.engine.rows(call, arguments)).hasSize(1);
				assertThat(this.engine.rows(call, arguments)).isEmpty();
				sender.connection().commit();
				assertThat(this.engine.rows(call, arguments)).hasSize(1);
				List<Message> messages = this.engine.drain(queue, "c");
				assertThat(messages).extracting(Message::payload).containsExactly("early", "late");
				assertThat(messages.get(1).id()).isEqualTo(late).isLessThan(messages.get(0).id());
			}
		}
	}

	@Test
	void commitThatCameLateIsCoveredAlthoughAKeepAliveTickStandsBetween() throws SQLException {
		String queue = this.engine.queue("c");
		try (Session sender = Session.transactional(this.database)) {
			sender.send(queue, "late");
			// Takes the present state of the sequence for seen.
			assertThat(this.engine.value(Long.class, "select pgque.ticker(?)", queue)).isNotNull();
			assertThat(this.engine.rows(ALL)).isEmpty();
			sender.connection().commit();
		}
		assertThat(this.engine.rows(ALL)).hasSize(1);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::payload).containsExactly("late");
	}

	@Test
	void resumedQueueIsLookedAt() throws SQLException {
		for (String parameter : List.of("ticker_paused", "external_ticker")) {
			String queue = this.engine.queue("c");
			try (Session sender = Session.transactional(this.database);
					Session ticker = Session.autoCommit(this.database)) {
				sender.send(queue, "late");
				this.engine.value(Long.class, "select pgque.ticker(?)", queue);
				this.engine.configure(queue, parameter, "true");
				sender.connection().commit();
				assertThat(ticker.column(String.class, "select queue_name from pgque.tick_now()")).isEmpty();
				this.engine.configure(queue, parameter, "false");
				assertThat(ticker.column(String.class, "select queue_name from pgque.tick_now()"))
					.containsExactly(queue);
			}
			assertThat(this.engine.drain(queue, "c")).extracting(Message::payload).containsExactly("late");
		}
	}

	@Test
	void everyTickNotifies() throws SQLException {
		String queue = this.engine.queue();
		String external = this.engine.queue();
		this.engine.configure(external, "external_ticker", "true");
		try (Session listener = Session.autoCommit(this.database)) {
			listener.run("listen pgque_" + queue + "; listen pgque_" + external);
			this.engine.send(queue, "x");
			this.engine.value(Long.class, "select pgque.ticker(?)", queue);
			this.engine.send(queue, "x");
			this.engine.tick(queue);
			this.engine.send(queue, "x");
			this.engine.rows(ALL);
			this.engine.rows(ALL);
			this.engine.value(Long.class, "select pgque.force_next_tick(?)", queue);
			this.engine.value(Long.class, "select pgque.ticker()");
			this.engine.value(Long.class, "select pgque.ticker(?, 77, now(), 1)", external);
			assertThat(notifications(listener)).containsExactly("pgque_" + queue + " 2", "pgque_" + queue + " 3",
					"pgque_" + queue + " 4", "pgque_" + queue + " 5", "pgque_" + external + " 77");
		}
	}

	@Test
	void sendAndRolledBackTickDoNotNotify() throws SQLException {
		String queue = "x".repeat(57);
		this.engine.value(Integer.class, "select pgque.create_queue(?)", queue);
		try (Session listener = Session.autoCommit(this.database)) {
			listener.run("listen pgque_" + queue);
			this.engine.send(queue, "x");
			this.engine.rolledBack(() -> this.engine.tick(queue));
			assertThat(notifications(listener)).isEmpty();
			this.engine.tick(queue);
			assertThat(notifications(listener)).hasSize(1);
		}
	}

	/**
	 * What the server sends along with an answer.
	 */
	private static List<String> notifications(Session session) throws SQLException {
		try (Statement statement = session.connection().createStatement()) {
			statement.execute("select 1");
		}
		PGNotification[] notifications = session.connection().unwrap(PGConnection.class).getNotifications();
		return Arrays.stream(notifications).map((each) -> each.getName() + " " + each.getParameter()).toList();
	}

	private static String names(String... queues) {
		return "{" + String.join(",", queues) + "}";
	}

}
