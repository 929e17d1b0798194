package io.pgque.engine;

import java.sql.Connection;
import java.sql.Statement;
import java.util.List;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.SqlCalls.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static io.pgque.engine.SqlCalls.SqlError.raised;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Batches of cooperative consumers: who gets which, who takes over, what becomes of them.
 */
@PgqueDatabase
class CooperativeBatchTests {

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void createGroup() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.calls.integer("select pgque.register_subconsumer(?, 'group', 'a')", this.queue);
		this.calls.integer("select pgque.register_subconsumer(?, 'group', 'b')", this.queue);
	}

	@Test
	void eachMemberGetsABatchOfItsOwn() {
		this.calls.sendTicks(this.queue, "1", "2", "3");
		long start = this.calls.newestTick(this.queue) - 3;
		Message first = receive("a").get(0);
		Message second = receive("b").get(0);
		assertThat(first.payload()).isEqualTo("1");
		assertThat(second.payload()).isEqualTo("2");
		assertThat(this.calls.subscription(this.queue, "group")).isEqualTo(tuple("coop_main", start + 2, null, null));
		assertThat(this.calls.subscription(this.queue, "group.a"))
			.isEqualTo(tuple("coop_member", start, first.batch(), start + 1));
		assertThat(this.calls.subscription(this.queue, "group.b"))
			.isEqualTo(tuple("coop_member", start + 1, second.batch(), start + 2));
		assertThat(Message.payloads(receive("c"))).as("registers by receiving").containsExactly("3");
		assertThat(receive("d")).isEmpty();
		assertThat(this.calls.isSubscribed(this.queue, "group.d")).isTrue();
	}

	@Test
	void anOpenBatchComesAgainAndCountsAsASignOfLife() {
		this.calls.sendTicks(this.queue, "1", "2");
		List<Message> first = receive("a");
		String active = activeSince("a");
		assertThat(receive("a")).isEqualTo(first);
		assertThat(activeSince("a")).isGreaterThan(active);
	}

	@Test
	void anAckedMemberStandsNowhere() {
		this.calls.sendTicks(this.queue, "1");
		long batch = receive("a").get(0).batch();
		assertThat(this.calls.integer("select pgque.ack(?)", batch)).isEqualTo(1);
		assertThat(this.calls.subscription(this.queue, "group.a")).isEqualTo(tuple("coop_member", null, null, null));
		assertThat(this.calls.integer("select pgque.ack(?)", batch)).isZero();
		assertThat(receive("a")).isEmpty();
	}

	@Test
	void theAckFinishesABatchThatWasReceivedInPart() {
		this.calls.send(this.queue, "1");
		this.calls.sendTicks(this.queue, "2");
		List<Message> part = this.calls.messages("select * from pgque.receive_coop(?, 'group', 'a', 1)", this.queue);
		assertThat(Message.payloads(part)).containsExactly("1");
		assertThat(Message.payloads(receive("a"))).containsExactly("1", "2");
		this.calls.integer("select pgque.ack(?)", part.get(0).batch());
		assertThat(receive("a")).isEmpty();
		assertThat(receive("b")).isEmpty();
	}

	@Test
	void atLeastOneMessageHasToBeWanted() {
		assertThat(this.calls.error("select * from pgque.receive_coop(?, 'group', 'a', 0)", this.queue))
			.satisfies(raised("max_return must be >= 1"));
		this.calls.sendTicks(this.queue, "1");
		assertThat(this.calls.messages("select * from pgque.receive_coop(?, 'group', 'a', null)", this.queue))
			.hasSize(1);
	}

	@Test
	void aTickWithoutEventsIsFinishedByTheReceiveThatMeetsIt() {
		this.calls.tickEmpty(this.queue);
		this.calls.sendTicks(this.queue, "1");
		assertThat(receive("a")).isEmpty();
		assertThat(this.calls.subscription(this.queue, "group.a")).isEqualTo(tuple("coop_member", null, null, null));
		assertThat(Message.payloads(receive("b"))).containsExactly("1");
	}

	@Test
	void nextBatchSaysWhichTicksItCovers() {
		this.calls.sendTicks(this.queue, "1", "2", "3");
		long start = this.calls.newestTick(this.queue) - 3;
		Long batch = this.calls.value(Long.class, "select pgque.next_batch(?, 'group', 'a')", this.queue);
		String custom = "select batch_id, prev_tick_id, next_tick_id from pgque.next_batch_custom(?, 'group', ?, ";
		assertThat(this.calls.row(custom + "null, null, null)", this.queue, "a"))
			.isEqualTo(tuple(batch, start, start + 1));
		assertThat(this.calls.row(custom + "'1 hour', null, null)", this.queue, "b")).as("too young")
			.isEqualTo(tuple(null, null, null));
		assertThat(this.calls.row(custom + "null, 3, null)", this.queue, "b")).as("too few")
			.isEqualTo(tuple(null, null, null));
		assertThat(this.calls.row(custom + "null, 2, null)", this.queue, "b").toList().subList(1, 3))
			.containsExactly(start + 1, start + 3);
		assertThat(this.calls.value(Long.class, "select pgque.next_batch(?, 'group', 'c')", this.queue)).isNull();
	}

	@Test
	void theBatchOfASilentMemberIsTakenOverUnderANewId() {
		this.calls.sendTicks(this.queue, "1", "2");
		Message lost = receive("a").get(0);
		assertThat(this.calls.messages("select * from pgque.receive_coop(?, 'group', 'b', 100, '1 hour')", this.queue))
			.extracting(Message::payload)
			.containsExactly("2");
		silence("a");
		List<Message> stolen = receive("c", "1 minute");
		assertThat(Message.payloads(stolen)).containsExactly("1");
		assertThat(stolen.get(0).id()).isEqualTo(lost.id());
		assertThat(stolen.get(0).batch()).isNotEqualTo(lost.batch());
		assertThat(this.calls.subscription(this.queue, "group.a")).isEqualTo(tuple("coop_member", null, null, null));

		assertThat(this.calls.integer("select pgque.ack(?)", lost.batch())).isZero();
		assertThat(this.calls.settle(lost.batch())).isFalse();
		assertThat(this.calls.error("select pgque.nack(?, row(?, null, null, null, null, null, null, null, null, null)"
				+ "::pgque.message)", lost.batch(), lost.id()))
			.satisfies(raised("batch not found: " + lost.batch()));
		assertThat(this.calls.error("select * from pgque.receive_page(?, 0, 10, 1000)", lost.batch()))
			.satisfies(raised("batch not found: " + lost.batch()));
		assertThat(this.calls.integer("select pgque.ack(?)", stolen.get(0).batch())).isEqualTo(1);
	}

	@Test
	void theMemberThatIsSilentForLongestLosesItsBatchFirst() {
		this.calls.sendTicks(this.queue, "1", "2");
		receive("a");
		receive("b");
		silence("b");
		silence("a");
		this.calls.update("update pgque.subscription set sub_active = now() - interval '2 hours'"
				+ " where sub_consumer = (select co_id from pgque.consumer where co_name = 'group.b')"
				+ " and sub_queue = (select queue_id from pgque.queue where queue_name = ?)", this.queue);
		assertThat(Message.payloads(receive("c", "1 minute"))).containsExactly("2");
		assertThat(Message.payloads(receive("d", "1 minute"))).containsExactly("1");
		assertThat(receive("e", "1 minute")).isEmpty();
	}

	@Test
	void nobodyIsRobbedWhoShowsSignsOfLife() {
		this.calls.sendTicks(this.queue, "1");
		receive("a");
		silence("a");
		assertThat(receive("b")).as("no dead interval").isEmpty();
		this.calls.integer("select pgque.touch_subconsumer(?, 'group', 'a')", this.queue);
		assertThat(receive("b", "1 minute")).isEmpty();
	}

	@Test
	void theOwnBatchGoesBeforeThatOfASilentMember() {
		this.calls.sendTicks(this.queue, "1", "2");
		receive("a");
		List<Message> own = receive("b");
		silence("a");
		assertThat(receive("b", "1 minute")).isEqualTo(own);
	}

	@Test
	void aPollThatFindsNothingWritesNothing() {
		this.calls.sendTicks(this.queue, "1");
		receive("a");
		String written = "select pg_current_xact_id_if_assigned()::text from pgque.receive_coop(?, 'group', 'b', 1, '1 h')"
				+ " right join (values (1)) v on true";
		String cursors = "select count(*) from pgque_internal.cursor";
		Long before = this.calls.value(Long.class, cursors);
		assertThat(this.calls.value(String.class, written, this.queue)).isNull();
		assertThat(
				this.calls.messages("select * from pgque.receive_coop_batch(?, 'group', 'b', 1, 1, '1 h')", this.queue))
			.isEmpty();
		assertThat(this.calls.value(Long.class, cursors)).isEqualTo(before);
	}

	@Test
	void whatAMemberGivesBackGoesToAnyOfThem() {
		this.calls.sendTicks(this.queue, "1");
		Message message = receive("a").get(0);
		this.calls.nack(message.batch(), message.id());
		this.calls.integer("select pgque.ack(?)", message.batch());
		this.calls.redeliver(this.queue);
		Message again = receive("b").get(0);
		assertThat(again.id()).isEqualTo(message.id());
		assertThat(again.retryCount()).isEqualTo(1);
	}

	@Test
	void whatWasGivenBackBeforeATakeoverWaitsForTheHeir() {
		this.calls.sendTicks(this.queue, "1");
		Message message = receive("a").get(0);
		this.calls.nack(message.batch(), message.id());
		silence("a");
		Message stolen = receive("b", "1 minute").get(0);
		this.calls.nack(stolen.batch(), stolen.id());
		this.calls.redeliver(this.queue);
		assertThat(receive("a")).isEmpty();
		this.calls.integer("select pgque.ack(?)", stolen.batch());
		this.calls.redeliver(this.queue);
		assertThat(receive("a")).hasSize(1);
	}

	@Test
	void whoLeavesGivesItsBatchBack() {
		this.calls.send(this.queue, "1");
		this.calls.sendTicks(this.queue, "2");
		Message message = receive("a").get(0);
		assertThat(leave("a")).isEqualTo(1);
		assertThat(this.calls.isSubscribed(this.queue, "group.a")).isFalse();
		assertThat(this.calls.integer("select pgque.ack(?)", message.batch())).isZero();
		assertThat(
				this.calls.rows(
						"select ev_data, ev_retry, ev_retry_after between now() + interval '50 s'"
								+ " and now() + interval '60 s' from pgque.retry_queue where ev_queue ="
								+ " (select queue_id from pgque.queue where queue_name = ?) order by ev_id",
						this.queue))
			.containsExactly(tuple("1", 1, true), tuple("2", 1, true));
		this.calls.redeliver(this.queue);
		List<Message> again = receive("b");
		assertThat(again).extracting(Message::payload, Message::retryCount)
			.containsExactly(tuple("1", 1), tuple("2", 1));
		assertThat(again.get(0).createdAt()).isEqualTo(message.createdAt());
	}

	@Test
	void whoLeavesGivesUpWhatWasTriedTooOften() {
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '0')", this.queue);
		this.calls.sendTicks(this.queue, "1");
		Message message = receive("a").get(0);
		String txid = this.calls.value(String.class, "select ev_txid::text from pgque.get_batch_events(?)",
				message.batch());
		leave("a");
		assertThat(
				this.calls.row(
						"select d.ev_id, ev_data, dl_reason, ev_txid::text, co_name"
								+ " from pgque.dlq_inspect(?) d join pgque.consumer on co_id = dl_consumer_id",
						this.queue))
			.isEqualTo(tuple(message.id(), "1", "subconsumer unregistered", txid, "group"));
		this.calls.integer("select pgque.maint()");
		assertThat(this.calls.rows("select from pgque.dlq_inspect(?)", this.queue)).as("survive their member")
			.hasSize(1);
	}

	@Test
	void leavingIsAtomic() throws Exception {
		this.calls.integer("select pgque.set_queue_config(?, 'max_retries', '0')", this.queue);
		this.calls.sendTicks(this.queue, "1");
		List<Message> batch = receive("a");
		try (Connection connection = this.database.connect(); Statement statement = connection.createStatement()) {
			statement.execute("create function refuse() returns trigger language plpgsql as"
					+ " 'begin raise exception ''no room''; end'");
			statement.execute("create trigger refuse before insert on pgque.dead_letter"
					+ " for each row execute function refuse()");
			try {
				assertThat(this.calls.error("select pgque.unregister_subconsumer(?, 'group', 'a', 1)", this.queue))
					.satisfies(raised("no room"));
			}
			finally {
				statement.execute("drop function refuse() cascade");
			}
		}
		assertThat(receive("a")).isEqualTo(batch);
		assertThat(this.calls.integer("select pgque.ack(?)", batch.get(0).batch())).isEqualTo(1);
	}

	@Test
	void aBatchThatWasSettledInPartGoesOnWhereItWas() {
		for (String payload : new String[] { "1", "2", "3", "4" }) {
			this.calls.sendTicks(this.queue, payload);
		}
		List<Message> batch = receiveMerged("a");
		assertThat(Message.payloads(batch)).containsExactly("1", "2", "3", "4");
		settleUpTo(batch.get(0));
		List<Message> rest = receiveMerged("a");
		assertThat(Message.payloads(rest)).containsExactly("2", "3", "4");
		assertThat(rest.get(0).batch()).isNotEqualTo(batch.get(0).batch());
		settleUpTo(rest.get(0));
		silence("a");
		assertThat(Message.payloads(receive("b", "1 minute"))).as("taken over").containsExactly("3", "4");
		settleUpTo(receiveMerged("b").get(0));
		leave("b");
		this.calls.redeliver(this.queue);
		assertThat(receive("a")).extracting(Message::payload, Message::retryCount).containsExactly(tuple("4", 1));
	}

	private void settleUpTo(Message last) {
		assertThat(this.calls.value(Boolean.class, "select settled from pgque.settle(?, ?, '{}', '{}', '{}', '{}')",
				last.batch(), last.id()))
			.isTrue();
	}

	@Test
	void aLargeBatchIsReadInPages() {
		this.calls.sendTicks(this.queue, "1", "2", "3");
		this.calls.tickEmpty(this.queue);
		List<Message> page = this.calls.messages("select * from pgque.receive_coop_batch(?, 'group', 'a', 3, 1, null)",
				this.queue);
		assertThat(Message.payloads(page)).containsExactly("1");
		assertThat(this.calls.messages("select * from pgque.receive_page(?, ?, 3, 100)", page.get(0).batch(),
				page.get(0).id()))
			.extracting(Message::payload)
			.containsExactly("2", "3");
		assertThat(this.calls.messages("select * from pgque.receive_coop_batch(?, 'group', 'b', 3, 100, null)",
				this.queue))
			.as("only empty ticks are left")
			.isEmpty();
		assertThat(this.calls.subscription(this.queue, "group").toList().get(1))
			.isEqualTo(this.calls.newestTick(this.queue));
	}

	private List<Message> receive(String member) {
		return this.calls.messages("select * from pgque.receive_coop(?, 'group', ?)", this.queue, member);
	}

	private List<Message> receive(String member, String deadInterval) {
		return this.calls.messages("select * from pgque.receive_coop(?, 'group', ?, 100, ?::interval)", this.queue,
				member, deadInterval);
	}

	private List<Message> receiveMerged(String member) {
		return this.calls.messages("select * from pgque.receive_coop_batch(?, 'group', ?, 100, 1000000, null)",
				this.queue, member);
	}

	private int leave(String member) {
		return this.calls.integer("select pgque.unregister_subconsumer(?, 'group', ?, 1)", this.queue, member);
	}

	private String activeSince(String member) {
		return (String) this.calls
			.row("select sub_active::text from pgque.subscription join pgque.consumer on co_id = sub_consumer"
					+ " join pgque.queue on queue_id = sub_queue where queue_name = ? and co_name = ?", this.queue,
					"group." + member)
			.toList()
			.get(0);
	}

	/**
	 * Let a member's last sign of life be an hour old.
	 */
	private void silence(String member) {
		this.calls.update(
				"update pgque.subscription set sub_active = now() - interval '1 hour'"
						+ " where sub_consumer = (select co_id from pgque.consumer where co_name = ?)"
						+ " and sub_queue = (select queue_id from pgque.queue where queue_name = ?)",
				"group." + member, this.queue);
	}

}
