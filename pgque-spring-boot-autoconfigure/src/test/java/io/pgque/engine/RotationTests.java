package io.pgque.engine;

import java.sql.SQLException;
import java.util.List;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

import io.pgque.engine.Engine.Message;
import io.pgque.engine.Engine.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for the rotation of event tables.
 */
@PgqueDatabase
@TestInstance(Lifecycle.PER_CLASS)
class RotationTests {

	private final TestDatabase database;

	private final Engine engine;

	RotationTests(TestDatabase database) {
		this.database = database;
		this.engine = new Engine(database);
	}

	@BeforeEach
	void queuesOfOthersRest() {
		this.engine.update("update pgque.queue set queue_switch_time = now(), queue_switch_step2 = queue_switch_step1");
	}

	@Test
	void twoStepsLeadFromTableToTable() {
		String queue = this.engine.queue("c");
		this.engine.configure(queue, "rotation_period", "1 millisecond");
		for (int table : new int[] { 1, 2, 0, 1 }) {
			this.engine.send(queue, 2);
			this.engine.tick(queue);
			assertThat(this.engine.drain(queue, "c")).hasSize(2);
			due(queue);
			assertThat(step1(queue)).isZero();
			assertThat(currentTable(queue)).isEqualTo(table);
			assertThat(this.engine.value(Long.class, "select queue_switch_step2 from pgque.queue where queue_name = ?",
					queue))
				.isNull();
			assertThat(step2()).isZero();
			assertThat(this.engine.row("select queue_switch_step2 > queue_switch_step1, queue_switch_time > now()"
					+ " - interval '1 minute' from pgque.queue where queue_name = ?", queue))
				.isEqualTo(tuple(true, true));
		}
	}

	@Test
	void rotationEmptiesTheOldestTable() {
		String queue = this.engine.queue("c");
		for (int i = 0; i < 3; i++) {
			this.engine.send(queue, 1);
			this.engine.tick(queue);
			assertThat(this.engine.drain(queue, "c")).hasSize(1);
			if (i < 2) {
				rotate(queue);
			}
		}
		assertThat(sizes(queue)).containsExactly(1, 1, 1);
		rotate(queue);
		assertThat(currentTable(queue)).isZero();
		assertThat(sizes(queue)).containsExactly(0, 1, 1);
		this.engine.send(queue, 1);
		assertThat(sizes(queue)).containsExactly(1, 1, 1);
	}

	@Test
	void rotationThatIsNotDueDoesNothing() {
		String queue = this.engine.queue("c");
		assertThat(step1(queue)).isZero();
		assertThat(currentTable(queue)).isZero();
		due(queue);
		step1(queue);
		due(queue);
		assertThat(step1(queue)).as("step 2 is pending").isZero();
		assertThat(currentTable(queue)).isEqualTo(1);
		assertThat(step1("nowhere")).isZero();
		assertThat(step1(null)).isZero();
	}

	@Test
	void batchMaySpanTables() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 2);
		rotate(queue);
		this.engine.send(queue, 2);
		this.engine.tick(queue);
		List<Message> messages = this.engine.receive(queue, "c");
		assertThat(messages).extracting(Message::id).containsExactly(1L, 2L, 3L, 4L);
		String table = "pgque.event_" + this.engine.idOf(queue);
		assertThat(this.engine.values(String.class, "select pgque.batch_event_tables(?)", messages.get(0).batch()))
			.containsExactly(table + "_0", table + "_1");
	}

	@Test
	void senderThatChoseAnOldTableIsHeard() {
		String queue = this.engine.queue("c");
		String old = this.engine.value(String.class, "select pgque.current_event_table(?)", queue);
		rotate(queue);
		rotate(queue);
		this.engine.update("insert into " + old + " (ev_type, ev_data) values ('t', 'late')");
		rotate(queue);
		assertThat(currentTable(queue)).as("its table is needed").isEqualTo(2);
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::payload).containsExactly("late");
		rotate(queue);
		assertThat(currentTable(queue)).isZero();
		assertThat(sizes(queue)).containsExactly(0, 0, 0);
	}

	@Test
	void tableThatTheSlowestConsumerNeedsStays() {
		String queue = this.engine.queue("fast", "slow");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "fast")).hasSize(1);
		for (int i = 0; i < 4; i++) {
			rotate(queue);
		}
		assertThat(currentTable(queue)).isEqualTo(2);
		long batch = this.engine.nextBatch(queue, "slow");
		rotate(queue);
		assertThat(currentTable(queue)).as("the batch is open").isEqualTo(2);
		assertThat(this.engine.receive(queue, "slow")).hasSize(1);
		this.engine.ack(batch);
		rotate(queue);
		assertThat(currentTable(queue)).isZero();
		assertThat(sizes(queue)).containsExactly(0, 0, 0);
	}

	@Test
	void eventsWithoutATickStay() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		for (int i = 0; i < 4; i++) {
			rotate(queue);
		}
		assertThat(currentTable(queue)).isEqualTo(2);
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).hasSize(1);
	}

	@Test
	void withoutSubscribersRotationGoesOn() {
		String queue = this.engine.queue();
		for (int table : new int[] { 1, 2, 0, 1 }) {
			this.engine.send(queue, 3);
			rotate(queue);
			assertThat(currentTable(queue)).isEqualTo(table);
		}
		assertThat(sizes(queue)).containsExactly(3, 0, 3);
		this.engine.send(queue, "after the last rotation");
		this.engine.subscribe(queue, "c");
		this.engine.tick(queue);
		assertThat(this.engine.drain(queue, "c")).extracting(Message::payload)
			.containsExactly("after the last rotation");
	}

	@Test
	void tableInUseIsLeftForTheNextCall() throws SQLException {
		String queue = this.engine.queue("c");
		try (Session reader = Session.transactional(this.database)) {
			reader.run("select * from pgque.event_" + this.engine.idOf(queue) + "_1");
			rotate(queue);
			assertThat(currentTable(queue)).isZero();
			reader.connection().rollback();
		}
		rotate(queue);
		assertThat(currentTable(queue)).isEqualTo(1);
	}

	@Test
	void queueInUseIsLeftForTheNextCall() throws SQLException {
		String queue = this.engine.queue("c");
		try (Session other = Session.transactional(this.database)) {
			due(queue);
			other.run("select from pgque.queue where queue_name = '" + queue + "' for no key update");
			assertThat(step1(queue)).isZero();
			assertThat(currentTable(queue)).isZero();
			other.connection().rollback();
		}
		step1(queue);
		assertThat(currentTable(queue)).isEqualTo(1);
	}

	@Test
	void stateOfAnotherClusterIsRefused() {
		String queue = this.engine.queue("c");
		due(queue);
		this.engine.update("update pgque.queue set queue_switch_step1 = 9999999999 where queue_name = ?", queue);
		assertThat(this.engine.error("select pgque.maint_rotate_tables_step1(?)", queue)).satisfies(maintFailure());
	}

	@Test
	void missingTickOfTheSlowestConsumerIsAFailure() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		this.engine.tick(queue);
		this.engine.update("delete from pgque.tick where tick_queue = ? and tick_id = 1", this.engine.idOf(queue));
		due(queue);
		assertThat(this.engine.error("select pgque.maint_rotate_tables_step1(?)", queue)).satisfies(maintFailure());
		String fine = this.engine.queue("c");
		due(fine);
		assertThat(this.engine.warnings("select pgque.maint()")).singleElement()
			.asString()
			.contains("maint failure", queue);
		assertThat(currentTable(fine)).as("stops no other").isEqualTo(1);
	}

	@Test
	void oldSnapshotMayNotRotate() {
		String queue = this.engine.queue();
		for (String call : new String[] { "pgque.maint_rotate_tables_step1('" + queue + "')", "pgque.maint()" }) {
			this.engine.inTransaction(() -> {
				this.engine.execute("set transaction isolation level repeatable read");
				assertThat(this.engine.error("select " + call).state()).isEqualTo("25000");
			});
		}
	}

	@Test
	void maintAloneKeepsRotating() {
		String queue = this.engine.queue("c");
		for (int table : new int[] { 1, 2, 0, 1, 2 }) {
			due(queue);
			assertThat(maint()).isZero();
			assertThat(currentTable(queue)).isEqualTo(table);
		}
	}

	@Test
	void maintFinishesWhatAnEarlierTransactionBegan() {
		String queue = this.engine.queue("c");
		due(queue);
		String pending = "select queue_switch_step2 is null from pgque.queue where queue_name = ?";
		this.engine.inTransaction(() -> {
			maint();
			assertThat(this.engine.value(Boolean.class, pending, queue)).isTrue();
			maint();
			assertThat(this.engine.value(Boolean.class, pending, queue)).as("its own step 1").isTrue();
		});
		maint();
		assertThat(this.engine.value(Boolean.class, pending, queue)).isFalse();
	}

	@Test
	void nothingIsLostWhileTablesRotate() {
		String queue = this.engine.queue("c", "lagging");
		long sent = 0;
		long received = 0;
		for (int i = 0; i < 20; i++) {
			sent += this.engine.send(queue, i % 4).size();
			this.engine.tick(queue);
			received += this.engine.drain(queue, "c").size();
			if (i % 5 == 4) {
				assertThat(this.engine.drain(queue, "lagging")).extracting(Message::id).isSorted();
			}
			due(queue);
			maint();
		}
		assertThat(received).isEqualTo(sent);
		assertThat(this.engine.position(queue, "lagging")).isEqualTo(this.engine.position(queue, "c"));
	}

	@Test
	void operationsThatAreDue() {
		String a = this.engine.queue("c");
		String b = this.engine.queue("c");
		assertThat(operations()).isEmpty();
		due(b);
		due(a);
		assertThat(operations()).containsExactly(tuple("pgque.maint_rotate_tables_step1", a),
				tuple("pgque.maint_rotate_tables_step1", b), tuple("pgque.maint_rotate_tables_step2", null));
		step1(a);
		this.engine.update("update pgque.queue set queue_switch_time = now() where queue_name = ?", b);
		this.engine.update("update pgque.queue set queue_extra_maint = '{one,two}' where queue_name = ?", b);
		assertThat(operations()).containsExactly(tuple("pgque.maint_rotate_tables_step2", null), tuple("one", b),
				tuple("two", b));
		this.engine.update("update pgque.queue set queue_extra_maint = null where queue_name = ?", b);
		step2();
		assertThat(operations()).isEmpty();
	}

	@Test
	void nothingIsVacuumedWhileAutovacuumIsOn() {
		assertThat(this.engine.values(String.class, "select pgque.maint_tables_to_vacuum()")).isEmpty();
	}

	@Test
	void positionWhoseEventsAreGoneDoesNotExist() {
		String queue = this.engine.queue("c");
		this.engine.send(queue, 1);
		long tick = this.engine.tick(queue);
		this.engine.drain(queue, "c");
		for (int i = 0; i < 3; i++) {
			rotate(queue);
		}
		assertThat(this.engine.error("select pgque.register_consumer_at(?, 'rewound', 1)", queue).message())
			.contains("tick not found");
		assertThat(this.engine.value(Integer.class, "select pgque.register_consumer_at(?, 'newest', ?)", queue, tick))
			.isEqualTo(1);
	}

	private void rotate(String queue) {
		due(queue);
		step1(queue);
		step2();
	}

	private void due(String queue) {
		this.engine.update("update pgque.queue set queue_switch_time = now() - interval '3 hours' where queue_name = ?",
				queue);
	}

	private int step1(String queue) {
		return this.engine.value(Integer.class, "select pgque.maint_rotate_tables_step1(?)", queue);
	}

	private int step2() {
		return this.engine.value(Integer.class, "select pgque.maint_rotate_tables_step2()");
	}

	private int maint() {
		return this.engine.value(Integer.class, "select pgque.maint()");
	}

	private int currentTable(String queue) {
		return this.engine.value(Integer.class, "select queue_cur_table from pgque.queue where queue_name = ?", queue);
	}

	/**
	 * How many rows the three tables of a queue hold.
	 */
	private List<Integer> sizes(String queue) {
		String table = "pgque.event_" + this.engine.idOf(queue);
		return List.of(0, 1, 2)
			.stream()
			.map((slot) -> this.engine.value(Integer.class, "select count(*) from " + table + "_" + slot))
			.toList();
	}

	private List<org.assertj.core.groups.Tuple> operations() {
		return this.engine.rows("select func_name, func_arg from pgque.maint_operations()");
	}

	private static java.util.function.Consumer<SqlError> maintFailure() {
		return (error) -> {
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).contains("maint failure");
		};
	}

}
