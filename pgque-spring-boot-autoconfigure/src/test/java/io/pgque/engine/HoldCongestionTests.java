package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.SqlCalls.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * How many of the messages that wait for others of their key come again at a time.
 */
@PgqueDatabase
class HoldCongestionTests {

	private static final int WINDOW = 20;

	private static final String NOW = "0 seconds";

	private static final String HOUR = "1 hour";

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	/**
	 * What was handled, in this order.
	 */
	private final List<Long> handled = new ArrayList<>();

	@BeforeEach
	void subscribe() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.calls.integer("select pgque.subscribe(?, 'c')", this.queue);
	}

	@Test
	void windowOfTheTestsIsTheOneInUse() {
		assertThat(this.calls.integer("select pgque_internal.hold_window()")).isEqualTo(WINDOW);
	}

	@Test
	void eachFailureHasABoundedNumberWrittenAgain() {
		int messages = 2000;
		send("A", messages);
		do {
			round((message) -> message.id() % 7 == 0 && message.retryCount() == null, NOW);
		}
		while (comeAgain());
		assertThat(this.handled).containsExactlyElementsOf(ids(1, messages));
		assertThat(this.calls.id("select pg_sequence_last_value(queue_sequence) from pgque.queue where queue_name = ?",
				this.queue))
			.as("rows written to the log")
			.isLessThan(6L * messages);
		assertThat(waiting()).isEmpty();
	}

	@Test
	void keysProceedSideBySide() {
		send("A", 300);
		send("B", 300);
		do {
			round((message) -> message.id() % 50 == 0 && message.retryCount() == null, NOW);
		}
		while (comeAgain());
		assertThat(this.handled).containsExactlyInAnyOrderElementsOf(ids(1, 600));
		assertThat(this.handled.stream().filter((id) -> id <= 300)).isSorted();
		assertThat(this.handled.stream().filter((id) -> id > 300)).isSorted();
		assertThat(waiting()).isEmpty();
	}

	@Test
	void thoseThatWaitFollowFasterAndFaster() {
		int messages = 5001;
		send("A", messages);
		int rounds = 0;
		do {
			round((message) -> message.id() == 1 && message.retryCount() == null, NOW);
			rounds++;
		}
		while (comeAgain());
		assertThat(this.handled).containsExactlyElementsOf(ids(1, messages));
		assertThat(rounds).isLessThanOrEqualTo(10);
	}

	@Test
	void thoseFarBehindAreParkedAMinuteBehindTheFirst() {
		send("A", 300);
		round((message) -> message.id() == 1, HOUR);
		assertThat(waiting()).containsExactly(tuple(0, 1L, 20L), tuple(60, 21L, 300L));
		send("A", 2);
		round((message) -> false, NOW);
		assertThat(waiting()).as("new ones").containsExactly(tuple(0, 1L, 20L), tuple(60, 21L, 302L));
	}

	@Test
	void newOnesFillTheWindow() {
		send("A", WINDOW - 1);
		round((message) -> message.id() == 1, HOUR);
		send("A", 2);
		round((message) -> false, NOW);
		assertThat(waiting()).containsExactly(tuple(0, 1L, 20L), tuple(60, 21L, 21L));
	}

	@Test
	void nextOnesAreDueWithTheOneThatHasFailed() {
		send("A", 300);
		round((message) -> message.id() == 1, HOUR);
		this.calls.update("update pgque.retry_queue set ev_retry_after = now() where ev_id <= 20");
		comeAgain();
		round((message) -> message.id() == 6, "30 minutes");
		assertThat(waiting()).containsExactly(tuple(0, 6L, 25L), tuple(1860, 26L, 300L));
		assertThat(this.calls.rows("select distinct ev_retry from pgque.retry_queue where ev_queue = "
				+ "(select queue_id from pgque.queue where queue_name = ?) and ev_id <> 6", this.queue))
			.as("what waits hasn't failed")
			.containsExactly(tuple((Object) null));
	}

	@Test
	void deadLetterLetsTheNextOnesFollowAtOnce() {
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '1')", this.queue);
		send("A", 300);
		round((message) -> message.id() == 1, NOW);
		comeAgain();
		round((message) -> message.id() == 1, HOUR);
		assertThat(comeAgain()).isTrue();
		assertThat(receive()).extracting(Message::id).containsExactlyElementsOf(ids(2, 21));
	}

	@Test
	void whatHasFailedItselfKeepsItsDelay() {
		send("A", 3);
		settle(receive(), ids(1, 2), HOUR, List.of(3L), List.of());
		this.calls.update("update pgque.retry_queue set ev_retry_after = now() where ev_id in (1, 3)");
		comeAgain();
		round((message) -> false, NOW);
		assertThat(this.handled).containsExactly(1L);
		assertThat(comeAgain()).isFalse();
		assertThat(waiting()).containsExactly(tuple(0, 2L, 3L));
	}

	@Test
	void whatHasFailedAndThenWaitedFollows() {
		send("A", 2);
		settle(receive(), ids(1, 2), NOW, List.of(), List.of());
		comeAgain();
		round((message) -> message.id() == 1, HOUR);
		this.calls.update("update pgque.retry_queue set ev_retry_after = now() where ev_id = 1");
		comeAgain();
		round((message) -> false, NOW);
		assertThat(comeAgain()).isTrue();
		round((message) -> false, NOW);
		assertThat(this.handled).containsExactly(1L, 2L);
	}

	@Test
	void parkedMessagesComeByThemselvesWhenAnotherFunctionHasSettledTheFirst() {
		send("A", 300);
		round((message) -> message.id() == 1, NOW);
		comeAgain();
		List<Message> batch = receive();
		assertThat(batch).hasSize(WINDOW);
		this.calls.settle(batch.get(0).batch());
		assertThat(comeAgain()).isFalse();
		age("1 minute");
		assertThat(comeAgain()).isTrue();
		assertThat(receive()).extracting(Message::id).containsExactlyElementsOf(ids(21, 300));
	}

	@Test
	void nextInstanceLetsThemFollow() {
		send("A", 300);
		round((message) -> message.id() == 1, NOW);
		comeAgain();
		this.calls.settle(receive().get(0).batch());
		this.calls.row("select pgque.instance_beat('congestion')");
		this.calls.id("select pgque.lease_acquire(?, 'c', 'congestion', '1 minute')", this.queue);
		assertThat(this.calls.integer("select pgque.maint_retry_events()")).as("twice as many as were stale")
			.isEqualTo(2 * WINDOW);
	}

	@Test
	void settlementWaitsForNobodyWhoHasLockedWhatFollows() throws SQLException {
		send("A", 300);
		round((message) -> message.id() == 1, NOW);
		comeAgain();
		try (Session other = Session.transactional(this.database)) {
			other.value(Long.class, "select ev_id from pgque.retry_queue join pgque.queue on queue_id = ev_queue"
					+ " where queue_name = ? and ev_id = 30 for update of retry_queue", this.queue);
			round((message) -> false, NOW);
			assertThat(this.calls.integer("select pgque.maint_retry_events()")).isEqualTo(2 * WINDOW - 1);
		}
		this.calls.tick(this.queue);
		round((message) -> false, NOW);
		assertThat(this.handled).as("the others keep the order").containsExactlyElementsOf(ids(1, 29));
		age("1 minute");
		while (comeAgain()) {
			round((message) -> false, NOW);
		}
		assertThat(this.handled).containsExactlyElementsOf(ids(1, 300));
	}

	private void send(String key, int count) {
		this.calls.id("select count(pgque.insert_event(?, 't', 'x', ?, null, null, null)) from generate_series(1, ?)",
				this.queue, key, count);
		this.calls.tick(this.queue);
	}

	private List<Message> receive() {
		return this.calls.messages("select * from pgque.receive_batch(?, 'c', 10000, 1000000000)", this.queue);
	}

	/**
	 * Let what is due come.
	 * @return whether anything does
	 */
	private boolean comeAgain() {
		boolean any = this.calls.integer("select pgque.maint_retry_events()") > 0;
		this.calls.tick(this.queue);
		return any;
	}

	private void age(String time) {
		this.calls.update("update pgque.retry_queue set ev_retry_after = ev_retry_after - ?::interval where ev_queue ="
				+ " (select queue_id from pgque.queue where queue_name = ?)", time, this.queue);
	}

	/**
	 * Receive a batch, handle what has no others of its key before it, and settle.
	 */
	private void round(Predicate<Message> failing, String delay) {
		List<Message> batch = receive();
		if (batch.isEmpty()) {
			return;
		}
		Map<Long, Tuple> places = this.calls
			.rows("select msg_id, place, after from pgque.key_places(?, ?::bigint[], ?::text[])", batch.get(0).batch(),
					array(batch.stream().map(Message::id).toList()),
					batch.stream().map(Message::extra1).collect(Collectors.joining(",", "{", "}")))
			.stream()
			.collect(Collectors.toMap((place) -> (Long) place.toList().get(0), (place) -> place));
		List<Long> failed = new ArrayList<>();
		List<Long> held = new ArrayList<>();
		List<Long> done = new ArrayList<>();
		List<String> failedKeys = new ArrayList<>();
		List<Object> passed = new ArrayList<>();
		for (Message message : batch) {
			List<Object> place = places.getOrDefault(message.id(), tuple(message.id(), null, null)).toList();
			if (failedKeys.contains(message.extra1()) || place.get(2) != null && !passed.contains(place.get(2))) {
				held.add(message.id());
				continue;
			}
			if (place.get(1) != null) {
				done.add(message.id());
			}
			if (failing.test(message)) {
				failed.add(message.id());
				failedKeys.add(message.extra1());
			}
			else {
				this.handled.add(message.id());
				if (place.get(1) != null) {
					passed.add(place.get(1));
				}
			}
		}
		settle(batch, failed, delay, held, done);
	}

	private void settle(List<Message> batch, List<Long> failed, String delay, List<Long> held, List<Long> done) {
		assertThat(this.calls.value(Boolean.class,
				"""
						select s.settled from (values (?::bigint[], ?::interval)) n (ids, delay)
						cross join lateral pgque.settle_holding(?, null, ids, array(select delay from unnest(ids)),
						    array(select 'why' from unnest(ids)), array(select false from unnest(ids)), ?::bigint[], ?::bigint[]) s
						""",
				array(failed), delay, batch.get(0).batch(), array(held), array(done)))
			.isTrue();
	}

	/**
	 * What waits to come again: seconds behind the one that is due first, lowest and
	 * highest id.
	 */
	private List<Tuple> waiting() {
		return this.calls.rows(
				"""
						select round(extract(epoch from due - min(due) over ()))::int, first, last
						from (select ev_retry_after as due, min(ev_id) as first, max(ev_id) as last
						      from pgque.retry_queue join pgque.queue on queue_id = ev_queue where queue_name = ? group by due) w
						order by due
						""",
				this.queue);
	}

	private static List<Long> ids(long first, long last) {
		return LongStream.rangeClosed(first, last).boxed().toList();
	}

	private static String array(List<Long> ids) {
		return ids.stream().map(String::valueOf).collect(Collectors.joining(",", "{", "}"));
	}

}
