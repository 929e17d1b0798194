package io.pgque.engine;

import java.util.List;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.engine.SqlCalls.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static io.pgque.engine.SqlCalls.SqlError.raised;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Cooperative members that belong to an instance of an application, and changes between
 * the kinds of consumers.
 */
@PgqueDatabase
class InstanceGroupTests {

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void subscribe() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.calls.integer("select pgque.subscribe(?, 'g')", this.queue);
		beat("i1");
		beat("i2");
	}

	@Test
	void whatAMemberLeavesGoesToTheNextThatAsksAndIsNotAFailure() {
		assertThat(join("a", "i1")).isOne();
		assertThat(join("a", "i1")).isZero();
		assertThat(join("b", "i2")).isOne();
		send("1", "2", "3");
		List<Message> batch = receive("a");
		assertThat(Message.payloads(batch)).containsExactly("1", "2", "3");
		settleUpTo(batch.get(0));
		assertThat(receive("b")).isEmpty();
		assertThat(leave("a")).isOne();
		List<Message> rest = receive("b");
		assertThat(Message.payloads(rest)).containsExactly("2", "3");
		assertThat(rest).allSatisfy((message) -> assertThat(message.retryCount()).isNull());
		assertThat(this.calls.settle(rest.get(0).batch())).isTrue();
		assertThat(this.calls.isSubscribed(this.queue, "g.a")).as("nobody comes back for it").isFalse();
		assertThat(leave("a")).isZero();
	}

	@Test
	void whatAMemberHadOpenWhenItLeftItCannotSettle() {
		join("a", "i1");
		send("1");
		Message message = receive("a").get(0);
		leave("a");
		assertThat(this.calls.settle(message.batch())).isFalse();
		join("b", "i2");
		assertThat(Message.payloads(receive("b"))).containsExactly("1");
	}

	@Test
	void membersOfDeadInstancesAreTakenOut() {
		join("a", "i1");
		join("idle", "i1");
		join("b", "i2");
		send("1");
		receive("a");
		this.calls.integer("select pgque.maint()");
		assertThat(mode()).isEqualTo(tuple("cooperative", null));
		assertThat(this.calls.isSubscribed(this.queue, "g.idle")).isTrue();
		silence("i1");
		this.calls.integer("select pgque.maint()");
		assertThat(this.calls.isSubscribed(this.queue, "g.idle")).isFalse();
		assertThat(Message.payloads(receive("b"))).as("before the dead interval").containsExactly("1");
		assertThat(this.calls.isSubscribed(this.queue, "g.a")).isFalse();
	}

	@Test
	void aConsumerBecomesAGroupWithinABatch() {
		Long epoch = this.calls.value(Long.class, "select pgque.lease_acquire(?, 'g', 'i1', '1 minute')", this.queue);
		send("1", "2", "3");
		List<Message> batch = this.calls.messages("select * from pgque.receive_leased(?, 'g', 'i1', ?, 100, 1000)",
				this.queue, epoch);
		String join = "select pgque.join_group(?, 'g', 'b', 'i2', '1 minute')";
		assertThat(this.calls.error(join, this.queue)).satisfies(raised("cannot convert active normal consumer g"));
		settleUpTo(batch.get(0));
		this.calls.value(Boolean.class, "select pgque.lease_release(?, 'g', 'i1', ?)", this.queue, epoch);
		assertThat(join("b", "i2")).isOne();
		send("4");
		List<Message> rest = receive("b");
		assertThat(Message.payloads(rest)).containsExactly("2", "3");
		this.calls.settle(rest.get(0).batch());
		assertThat(Message.payloads(receive("b"))).containsExactly("4");
	}

	@Test
	void aDeadOwnersBatchMovesIntoTheGroup() {
		Long epoch = this.calls.value(Long.class, "select pgque.lease_acquire(?, 'g', 'i1', '1 minute')", this.queue);
		send("1", "2");
		Message message = this.calls
			.messages("select * from pgque.receive_leased(?, 'g', 'i1', ?, 100, 1000)", this.queue, epoch)
			.get(0);
		silence("i1");
		join("b", "i2");
		assertThat(Message.payloads(receive("b"))).containsExactly("1", "2");
		assertThat(this.calls.settle(message.batch())).isFalse();
	}

	@Test
	void aGroupWithoutWorkersBecomesAConsumer() {
		join("a", "i1");
		join("b", "i2");
		send("1", "2");
		List<Message> batch = receive("a");
		settleUpTo(batch.get(0));
		send("3");
		receive("b");
		String dissolve = "select pgque.dissolve_group(?, 'g')";
		assertThat(this.calls.error(dissolve, this.queue)).satisfies(raised("has members at work"));
		silence("i1");
		silence("i2");
		assertThat(this.calls.integer(dissolve, this.queue)).isEqualTo(2);
		assertThat(mode()).isEqualTo(tuple("normal", null));
		send("4");
		this.calls.redeliver(this.queue);
		List<Message> again = this.calls.messages("select * from pgque.receive_batch(?, 'g', 100, 1000)", this.queue);
		assertThat(Message.payloads(again)).containsExactly("2", "3", "4");
		assertThat(again).as("no failure").allSatisfy((message) -> assertThat(message.retryCount()).isNull());
		assertThat(this.calls.integer(dissolve, this.queue)).isZero();
	}

	@Test
	void membersOfOtherClientsAreLeftAlone() {
		this.calls.integer("select pgque.register_subconsumer(?, 'g', 'python', true)", this.queue);
		assertThat(this.calls.error("select pgque.dissolve_group(?, 'g')", this.queue))
			.satisfies(raised("has members at work"));
		this.calls.integer("select pgque.maint()");
		assertThat(this.calls.isSubscribed(this.queue, "g.python")).isTrue();
	}

	@Test
	void slotsGoOnWithinABatch() {
		Long epoch = this.calls.value(Long.class, "select pgque.lease_acquire(?, 'g', 'i1', '1 minute')", this.queue);
		for (String payload : List.of("1", "2", "3", "4")) {
			this.calls.sendKeyed(this.queue, "key " + payload, payload);
		}
		this.calls.tick(this.queue);
		String receive = "select * from pgque.receive_leased(?, 'g', 'i1', ?, 100, 1000)";
		List<Message> batch = this.calls.messages(receive, this.queue, epoch);
		this.calls.row("select * from pgque.settle(?, ?, array[?], '{1 h}', '{why}', '{f}')", batch.get(0).batch(),
				batch.get(0).id(), batch.get(0).id());
		batch = this.calls.messages(receive, this.queue, epoch);
		assertThat(Message.payloads(batch)).containsExactly("2", "3", "4");
		settleUpTo(batch.get(0));
		this.calls.value(Boolean.class, "select pgque.lease_release(?, 'g', 'i1', ?)", this.queue, epoch);
		assertThat(this.calls.value(Boolean.class, "select pgque.change_partitions(?, 'g', 2)", this.queue)).isTrue();
		assertThat(mode()).isEqualTo(tuple("partitioned", 2));
		this.calls.redeliver(this.queue);
		List<String> payloads = new java.util.ArrayList<>();
		for (int slot = 0; slot < 2; slot++) {
			String name = "g#" + slot + "/2";
			Long slotEpoch = this.calls.value(Long.class, "select pgque.lease_acquire(?, ?, 'i2', '1 minute')",
					this.queue, name);
			List<Message> got;
			do {
				got = this.calls.messages("select * from pgque.receive_leased(?, ?, 'i2', ?, 100, 1000)", this.queue,
						name, slotEpoch);
				payloads.addAll(Message.payloads(got));
				got.stream().findFirst().ifPresent((message) -> this.calls.settle(message.batch()));
			}
			while (!got.isEmpty());
		}
		assertThat(payloads).as("the rest, and what was to be retried").containsExactlyInAnyOrder("1", "3", "4");
	}

	private Tuple mode() {
		return this.calls.row("select mode, slots from pgque.consumer_mode(?, 'g')", this.queue);
	}

	private void send(String... payloads) {
		for (String payload : payloads) {
			this.calls.send(this.queue, payload);
		}
		this.calls.tick(this.queue);
	}

	private int join(String member, String instance) {
		return this.calls.integer("select pgque.join_group(?, 'g', ?, ?, '1 minute')", this.queue, member, instance);
	}

	private int leave(String member) {
		return this.calls.integer("select pgque.leave_group(?, 'g', ?)", this.queue, member);
	}

	private List<Message> receive(String member) {
		return this.calls.messages("select * from pgque.receive_coop_batch(?, 'g', ?, 100, 1000, '1 hour')", this.queue,
				member);
	}

	private void settleUpTo(Message message) {
		this.calls.row("select * from pgque.settle(?, ?, '{}', '{}', '{}', '{}')", message.batch(), message.id());
	}

	private void beat(String instance) {
		this.calls.row("select pgque.instance_beat(?)", instance);
	}

	private void silence(String instance) {
		this.calls.update(
				"update pgque_internal.instance set ins_heartbeat = now() - interval '1 hour'" + " where ins_name = ?",
				instance);
	}

}
