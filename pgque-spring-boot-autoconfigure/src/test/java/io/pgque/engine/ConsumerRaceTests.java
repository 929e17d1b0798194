package io.pgque.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Sessions that move the same consumer, and tickers that die.
 */
@PgqueDatabase
class ConsumerRaceTests {

	private static final String RECEIVE = "select batch_id from pgque.receive(?, 'consumer')";

	private static final AtomicLong NUMBER = new AtomicLong();

	TestDatabase database;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.queue = "consumer-race-" + NUMBER.incrementAndGet();
		this.database.query("select pgque.create_queue(?), pgque.subscribe(?, 'consumer')", this.queue, this.queue);
		this.database.query("select pgque.send(?, 'x'::text)", this.queue);
		this.database.query("select * from pgque.tick_now()");
	}

	@Test
	void aSecondReceiverWaitsAndGetsTheSameBatch() throws Exception {
		try (Crowd crowd = new Crowd();
				Session first = Session.transactional(this.database);
				Session second = Session.autoCommit(this.database)) {
			Long batch = first.value(Long.class, RECEIVE, this.queue);
			int backend = second.backend();
			Future<Long> same = crowd.start(() -> second.value(Long.class, RECEIVE, this.queue));
			Awaitility.await()
				.until(() -> this.database.value(Boolean.class,
						"select wait_event_type = 'Lock' from pg_stat_activity where pid = ?", backend));
			assertThat(same).isNotDone();
			first.commit();
			assertThat(same.get(10, TimeUnit.SECONDS)).isEqualTo(batch);
		}
	}

	@Test
	void onlyOneOfTwoAcksCounts() throws Exception {
		try (Session session = Session.autoCommit(this.database); Crowd crowd = new Crowd()) {
			Long batch = session.value(Long.class, RECEIVE, this.queue);
			List<Boolean> settled = crowd.atOnce(8, () -> {
				try (Session other = Session.autoCommit(this.database)) {
					return other.value(Boolean.class,
							"select settled from pgque.settle(?, null, null, null, null, null)", batch);
				}
			});
			assertThat(settled).containsOnlyOnce(true);
		}
	}

	@Test
	void aStaleSnapshotCannotMoveTheConsumerBack() throws Exception {
		try (Session stale = Session.repeatableRead(this.database);
				Session session = Session.autoCommit(this.database)) {
			stale.value(Long.class, "select count(*) from pgque.queue");
			assertThat(session.consume(this.queue, "consumer")).hasSize(1);
			assertThatExceptionOfType(SQLException.class)
				.isThrownBy(() -> stale.value(Long.class, "select pgque.next_batch(?, 'consumer')", this.queue))
				.satisfies((ex) -> assertThat(ex.getSQLState()).isEqualTo("40001"));
			stale.rollback();
			assertThat(session.consume(this.queue, "consumer")).isEmpty();
		}
	}

	@Test
	void tickingOnAFrozenSnapshotIsRefused() throws Exception {
		try (Session frozen = Session.repeatableRead(this.database)) {
			for (String call : List.of("select * from pgque.tick_now()", "select pgque.ticker()",
					"select pgque.maint()", "select pgque.maint_rotate_tables_step1('" + this.queue + "')")) {
				assertThatExceptionOfType(SQLException.class).isThrownBy(() -> frozen.run(call))
					.satisfies((ex) -> assertThat(ex.getSQLState()).isEqualTo("25000"))
					.withMessageContaining("READ COMMITTED");
				frozen.rollback();
			}
		}
	}

	@Test
	void aNudgeSaysThatAnotherSessionTicks() throws Exception {
		this.database.query("select pgque.send(?, 'y'::text)", this.queue);
		try (Session first = Session.transactional(this.database); Session second = Session.autoCommit(this.database)) {
			String tick = "select outcome from pgque.tick_now(array[?])";
			assertThat(first.column(String.class, tick, this.queue)).containsExactly("ticked");
			assertThat(second.column(String.class, tick, this.queue)).containsExactly("busy");
			first.rollback();
			assertThat(second.column(String.class, tick, this.queue)).containsExactly("ticked");
			assertThat(second.column(String.class, tick, this.queue)).isEmpty();
		}
	}

	@Test
	void aKilledTickerLeavesNothingBehind() throws Exception {
		this.database.query("select pgque.send(?, 'y'::text)", this.queue);
		try (Session doomed = Session.transactional(this.database)) {
			assertThat(doomed.column(String.class, "select outcome from pgque.tick_now()")).containsExactly("ticked");
			this.database.query("select pg_terminate_backend(?)", doomed.backend());
		}
		Awaitility.await()
			.until(() -> this.database.values(String.class, "select outcome from pgque.tick_now(array[?])", this.queue),
					List.of("ticked")::equals);
		assertThat(receiveAll()).containsExactly("x", "y");
	}

	@Test
	void twoSessionsMoveDueRetriesOnce() throws Exception {
		for (int i = 0; i < 200; i++) {
			this.database.query("select pgque.send(?, 'retried'::text)", this.queue);
		}
		this.database.query("select * from pgque.tick_now()");
		this.database.query("""
				select settled from (select array_agg(msg_id) as ids, min(batch_id) as batch
				                     from pgque.receive_batch(?, 'consumer', 1000, 1000000)) b,
				    lateral pgque.settle(batch, null, ids, array_fill(interval '0', array[201]),
				                         array_fill(''::text, array[201]), array_fill(false, array[201]))""",
				this.queue);
		try (Crowd crowd = new Crowd()) {
			List<Integer> moved = crowd.atOnce(4, () -> {
				try (Session session = Session.autoCommit(this.database)) {
					return session.value(Integer.class, "select pgque.maint_retry_events()");
				}
			});
			assertThat(moved.stream().mapToInt(Integer::intValue).sum()).isEqualTo(201);
		}
		this.database.query("select * from pgque.tick_now()");
		assertThat(receiveAll()).hasSize(201);
	}

	private List<String> receiveAll() {
		List<String> payloads = new ArrayList<>();
		for (int i = 0; i < 3; i++) {
			this.database
				.query("select payload, batch_id from pgque.receive_batch(?, 'consumer', 1000, 1000000)", this.queue)
				.forEach((row) -> payloads.add((String) row.get("payload")));
			this.database.query("select pgque.ack(sub_batch) from pgque.subscription where sub_batch is not null");
		}
		return payloads;
	}

}
