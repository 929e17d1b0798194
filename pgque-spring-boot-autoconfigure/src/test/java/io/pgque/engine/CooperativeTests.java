package io.pgque.engine;

import java.util.List;
import java.util.stream.Stream;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

import io.pgque.engine.SqlCalls.Message;
import io.pgque.engine.SqlCalls.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static io.pgque.engine.SqlCalls.SqlError.raised;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Members of cooperative consumers: how they come and go, and what the functions for
 * plain consumers make of them.
 */
@PgqueDatabase
class CooperativeTests {

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void createQueue() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
	}

	@Test
	void theFirstMemberMakesTheGroupAtTheNewestTick() {
		this.calls.sendTicks(this.queue, "before");
		long tick = this.calls.newestTick(this.queue);
		assertThat(register("a")).isEqualTo(1);
		assertThat(register("a")).isZero();
		assertThat(register("b")).isEqualTo(1);
		assertThat(this.calls.subscription(this.queue, "group")).isEqualTo(tuple("coop_main", tick, null, null));
		assertThat(this.calls.subscription(this.queue, "group.a")).isEqualTo(tuple("coop_member", null, null, null));
		assertThat(this.calls.values(Integer.class, "select distinct sub_id from pgque.subscription where sub_queue = "
				+ "(select queue_id from pgque.queue where queue_name = ?)", this.queue))
			.hasSize(1);
	}

	@Test
	void aliasesDoTheSame() {
		assertThat(this.calls.integer("select pgque.subscribe_subconsumer(?, 'group', 'a')", this.queue)).isEqualTo(1);
		assertThat(this.calls.integer("select pgque.subscribe_subconsumer(?, 'group', 'a', true)", this.queue))
			.isZero();
		assertThat(this.calls.integer("select pgque.unsubscribe_subconsumer(?, 'group', 'a')", this.queue))
			.isEqualTo(1);
		assertThat(this.calls.integer("select pgque.unsubscribe_subconsumer(?, 'group', 'a', 1)", this.queue)).isZero();
	}

	@Test
	void registeringAgainIsASignOfLife() {
		register("a");
		String active = "select sub_active::text from pgque.subscription where sub_role = 'coop_member' and sub_queue = "
				+ "(select queue_id from pgque.queue where queue_name = ?)";
		String before = this.calls.value(String.class, active, this.queue);
		register("a");
		assertThat(this.calls.value(String.class, active, this.queue)).isGreaterThan(before);
	}

	@ParameterizedTest
	@MethodSource
	void namesMustNotBeEmptyNorContainADot(String consumer, String subconsumer) {
		for (String call : new String[] { "pgque.register_subconsumer(?, ?, ?)", "pgque.subscribe_subconsumer(?, ?, ?)",
				"pgque.unregister_subconsumer(?, ?, ?)", "pgque.unsubscribe_subconsumer(?, ?, ?, 1)",
				"pgque.touch_subconsumer(?, ?, ?)", "pgque.receive_coop(?, ?, ?)",
				"pgque.receive_coop_batch(?, ?, ?, 10, 1000, null)", "pgque.next_batch(?, ?, ?, interval '1 s')" }) {
			SqlError error = this.calls.error("select " + call, this.queue, consumer, subconsumer);
			assertThat(error.state()).isEqualTo("P0001");
			assertThat(error.message()).startsWith("invalid names of a cooperative consumer");
		}
	}

	static Stream<Arguments> namesMustNotBeEmptyNorContainADot() {
		return Stream.of(Arguments.of(null, "a"), Arguments.of("group", null), Arguments.of("", "a"),
				Arguments.of("group", ""), Arguments.of("gro.up", "a"), Arguments.of("group", "a."));
	}

	@Test
	void anUnknownQueueIsReported() {
		SqlError error = this.calls.error("select pgque.register_subconsumer('nowhere', 'group', 'a')");
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(error.message()).startsWith("Event queue not created yet");
		assertThat(this.calls.error("select * from pgque.receive_coop('nowhere', 'group', 'a')")).isEqualTo(error);
	}

	@Test
	void aNormalConsumerIsConvertedOnRequestOnly() {
		this.calls.integer("select pgque.subscribe(?, 'group')", this.queue);
		this.calls.sendTicks(this.queue, "1", "2");
		long batch = this.calls.messages("select * from pgque.receive(?, 'group')", this.queue).get(0).batch();
		String asked = "select pgque.register_subconsumer(?, 'group', 'a', i_convert_normal => true)";
		assertThat(this.calls.error("select pgque.register_subconsumer(?, 'group', 'a')", this.queue))
			.satisfies(raised("consumer group on queue " + this.queue + " is already a normal consumer"));
		assertThat(this.calls.error(asked, this.queue)).satisfies(raised("cannot convert active normal consumer"));
		assertThat(this.calls.isSubscribed(this.queue, "group.a")).isFalse();

		this.calls.integer("select pgque.ack(?)", batch);
		var before = subscriptionId();
		assertThat(this.calls.integer(asked, this.queue)).isEqualTo(1);
		assertThat(subscriptionId()).isEqualTo(before);
		assertThat(this.calls.subscription(this.queue, "group").toList().get(0)).isEqualTo("coop_main");
		assertThat(Message.payloads(receive("a"))).containsExactly("2");
	}

	@Test
	void aConsumerWhoseBatchIsSettledInPartIsActive() {
		this.calls.integer("select pgque.subscribe(?, 'group')", this.queue);
		this.calls.send(this.queue, "1");
		this.calls.sendTicks(this.queue, "2");
		Message first = this.calls.messages("select * from pgque.receive(?, 'group')", this.queue).get(0);
		this.calls.row("select * from pgque.settle(?, ?, '{}', '{}', '{}', '{}')", first.batch(), first.id());
		assertThat(this.calls.error("select pgque.register_subconsumer(?, 'group', 'a', true)", this.queue))
			.satisfies(raised("cannot convert active normal consumer"));
	}

	@Test
	void namesOfOtherKindsAreIncompatible() {
		this.calls.integer("select pgque.subscribe(?, 'group.a')", this.queue);
		assertThat(this.calls.error("select pgque.register_subconsumer(?, 'group', 'a')", this.queue))
			.satisfies(raised("consumer group.a on queue " + this.queue + " is already registered incompatibly"));
		assertThat(this.calls.isSubscribed(this.queue, "group")).isFalse();
		assertThat(register("b")).isEqualTo(1);
		this.calls.sendTicks(this.queue, "1");
		assertThat(this.calls.error("select * from pgque.receive_coop(?, 'group', 'a')", this.queue))
			.satisfies(raised("consumer group.a on queue " + this.queue + " is already registered incompatibly"));
	}

	@Test
	void touchingIsASignOfLife() {
		register("a");
		String active = "select sub_active > ?::timestamptz from pgque.subscription where sub_role = 'coop_member'"
				+ " and sub_queue = (select queue_id from pgque.queue where queue_name = ?)";
		String before = this.calls.value(String.class, "select clock_timestamp()::text");
		assertThat(this.calls.integer("select pgque.touch_subconsumer(?, 'group', 'a')", this.queue)).isEqualTo(1);
		assertThat(this.calls.value(Boolean.class, active, before, this.queue)).isTrue();
		assertThat(this.calls.integer("select pgque.touch_subconsumer(?, 'group', 'b')", this.queue)).isZero();
		assertThat(this.calls.integer("select pgque.touch_subconsumer(?, 'others', 'a')", this.queue)).isZero();
		assertThat(this.calls.integer("select pgque.touch_subconsumer('nowhere', 'group', 'a')")).isZero();
	}

	@Test
	void leavingIsRepeatable() {
		register("a");
		assertThat(unregister("a", 0)).isEqualTo(1);
		assertThat(unregister("a", 0)).isZero();
		assertThat(this.calls.integer("select pgque.unregister_subconsumer('nowhere', 'group', 'a')")).isZero();
	}

	@Test
	void theLastMemberLeavesANormalConsumerAtTheGroupsPosition() {
		register("a");
		register("b");
		this.calls.sendTicks(this.queue, "1", "2");
		this.calls.integer("select pgque.ack(?)", receive("a").get(0).batch());
		long tick = this.calls.newestTick(this.queue) - 1;
		int id = subscriptionId();
		unregister("a", 0);
		assertThat(this.calls.subscription(this.queue, "group")).isEqualTo(tuple("coop_main", tick, null, null));
		unregister("b", 0);
		assertThat(this.calls.subscription(this.queue, "group")).isEqualTo(tuple("normal", tick, null, null));
		assertThat(subscriptionId()).isEqualTo(id);
		assertThat(Message.payloads(this.calls.messages("select * from pgque.receive(?, 'group')", this.queue)))
			.containsExactly("2");
	}

	@Test
	void aMembersNameGoesWithTheNextMaintenance() {
		register("name");
		unregister("name", 0);
		this.calls.integer("select pgque.maint()");
		assertThat(this.calls.values(String.class, "select co_name from pgque.consumer where co_name = 'group.name'"))
			.isEmpty();
	}

	@ParameterizedTest
	@ValueSource(strings = { "2", "-1", "null" })
	void otherBatchHandlingsAreUnsupported(String handling) {
		register("a");
		assertThat(
				this.calls.error("select pgque.unregister_subconsumer(?, 'group', 'a', " + handling + ")", this.queue))
			.satisfies(raised("unsupported batch_handling value"));
		assertThat(this.calls.isSubscribed(this.queue, "group.a")).isTrue();
	}

	@Test
	void anOpenBatchKeepsItsMember() {
		register("b");
		this.calls.sendTicks(this.queue, "1");
		long batch = receive("a").get(0).batch();
		for (String call : new String[] { "pgque.unregister_subconsumer(?, 'group', 'a')",
				"pgque.unregister_consumer(?, 'group.a')", "pgque.unsubscribe(?, 'group.a')" }) {
			assertThat(this.calls.error("select " + call, this.queue))
				.satisfies(raised("cooperative subconsumer has an open batch: " + batch));
		}
		assertThat(Message.payloads(receive("a"))).containsExactly("1");
	}

	@Test
	void plainFunctionsRefuseTheGroup() {
		register("a");
		this.calls.sendTicks(this.queue, "1");
		for (String call : new String[] { "pgque.receive(?, 'group')", "pgque.next_batch(?, 'group')",
				"pgque.next_batch_info(?, 'group')", "pgque.next_batch_custom(?, 'group', null, null, null)",
				"pgque.receive_batch(?, 'group', 10, 1000)" }) {
			assertThat(this.calls.error("select " + call, this.queue))
				.satisfies(raised("group on " + this.queue + " is a cooperative main consumer"));
			assertThat(this.calls.error("select " + call.replace("'group'", "'group.a'"), this.queue))
				.satisfies(raised("group.a on " + this.queue + " is a cooperative subconsumer"));
		}
	}

	@Test
	void plainUnregisteringTakesIdleMembersOnly() {
		register("a");
		assertThat(this.calls.error("select pgque.unregister_consumer(?, 'group')", this.queue))
			.satisfies(raised("cannot unregister cooperative main consumer"));
		assertThat(this.calls.integer("select pgque.unregister_consumer(?, 'group.a')", this.queue)).isEqualTo(1);
		assertThat(this.calls.subscription(this.queue, "group").toList().get(0)).isEqualTo("normal");
		assertThat(this.calls.integer("select pgque.unregister_consumer(?, 'group')", this.queue)).isEqualTo(1);
		assertThat(this.calls.isSubscribed(this.queue, "group")).isFalse();
	}

	@Test
	void aGroupWithoutMembersHasNoBatches() {
		this.calls.integer("select pgque.subscribe(?, 'group')", this.queue);
		this.calls.update("update pgque.subscription set sub_role = 'coop_main' where sub_queue = "
				+ "(select queue_id from pgque.queue where queue_name = ?)", this.queue);
		this.calls.sendTicks(this.queue, "1");
		assertThat(this.calls.value(Long.class, "select pgque.next_batch(?, 'group')", this.queue)).isNull();
		assertThat(this.calls.messages("select * from pgque.receive(?, 'group')", this.queue)).isEmpty();
		assertThat(this.calls.subscription(this.queue, "group").toList().get(2)).isNull();
	}

	@Test
	void theGroupItselfFinishesNoBatch() {
		register("a");
		this.calls.sendTicks(this.queue, "1");
		this.calls.update("update pgque.subscription set sub_batch = nextval('pgque.batch_id_seq'),"
				+ " sub_next_tick = sub_last_tick + 1 where sub_role = 'coop_main' and sub_queue = "
				+ "(select queue_id from pgque.queue where queue_name = ?)", this.queue);
		Object batch = this.calls.subscription(this.queue, "group").toList().get(2);
		for (String function : new String[] { "finish_batch", "ack" }) {
			assertThat(this.calls.error("select pgque." + function + "(?)", batch))
				.satisfies(raised("cannot finish cooperative main consumer batch"));
		}
	}

	@Test
	void onlyTheGroupCanBeMoved() {
		register("a");
		long start = this.calls.newestTick(this.queue);
		this.calls.sendTicks(this.queue, "1");
		assertThat(this.calls.error("select pgque.register_consumer_at(?, 'group.a', ?)", this.queue, start))
			.satisfies(raised("consumer group.a on " + this.queue + " shares its position with others"));
		this.calls.integer("select pgque.ack(?)", receive("a").get(0).batch());
		assertThat(this.calls.integer("select pgque.register_consumer_at(?, 'group', ?)", this.queue, start)).isZero();
		assertThat(Message.payloads(receive("a"))).containsExactly("1");
	}

	@Test
	void readersCooperateAndWritersDoNot() {
		SqlCalls reader = new SqlCalls(this.database.createLogin("pgque_reader").dataSource());
		SqlCalls writer = new SqlCalls(this.database.createLogin("pgque_writer").dataSource());
		for (String call : new String[] { "pgque.register_subconsumer(?, 'group', 'a')",
				"pgque.subscribe_subconsumer(?, 'group', 'b')", "pgque.touch_subconsumer(?, 'group', 'a')",
				"pgque.receive_coop(?, 'group', 'a')", "pgque.receive_coop_batch(?, 'group', 'a', 10, 1000, null)",
				"pgque.next_batch(?, 'group', 'a', null)", "pgque.next_batch_custom(?, 'group', 'a', null, null, null)",
				"pgque.unregister_subconsumer(?, 'group', 'a')", "pgque.unsubscribe_subconsumer(?, 'group', 'b')" }) {
			reader.rows("select * from " + call, this.queue);
			assertThat(writer.error("select * from " + call, this.queue).state()).isEqualTo("42501");
		}
	}

	private int register(String member) {
		return this.calls.integer("select pgque.register_subconsumer(?, 'group', ?)", this.queue, member);
	}

	private int unregister(String member, int handling) {
		return this.calls.integer("select pgque.unregister_subconsumer(?, 'group', ?, ?)", this.queue, member,
				handling);
	}

	private List<Message> receive(String member) {
		return this.calls.messages("select * from pgque.receive_coop(?, 'group', ?)", this.queue, member);
	}

	private int subscriptionId() {
		return this.calls.integer(
				"select sub_id from pgque.subscription join pgque.queue on queue_id = sub_queue"
						+ " join pgque.consumer on co_id = sub_consumer where queue_name = ? and co_name = 'group'",
				this.queue);
	}

}
