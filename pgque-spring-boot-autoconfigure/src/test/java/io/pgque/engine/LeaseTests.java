package io.pgque.engine;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.List;

import org.assertj.core.api.InstanceOfAssertFactories;
import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

import io.pgque.engine.SqlCalls.Message;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static io.pgque.engine.SqlCalls.SqlError.raised;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Leases: one instance of an application moves a consumer.
 */
@PgqueDatabase
class LeaseTests {

	private static final String LOCK_NOT_AVAILABLE = "55P03";

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void subscribe() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.calls.integer("select pgque.subscribe(?, 'c')", this.queue);
		beat("i1");
		beat("i2");
	}

	@Test
	void aLeaseHasOneHolder() {
		assertThat(acquire("i1")).isEqualTo(1);
		assertThat(acquire("i1")).as("keeps it").isEqualTo(1);
		assertThat(acquire("i2")).isNull();
		assertThat(this.calls.value(Long.class, "select pgque.lease_acquire(?, 'c', 'i1', '2 minutes')", this.queue))
			.as("with another time")
			.isEqualTo(1);
		assertThat(this.calls.rows("select consumer_name, instance, epoch, alive, last_heartbeat <= clock_timestamp()"
				+ " from pgque.leases() where queue_name = ?", this.queue))
			.containsExactly(tuple("c", "i1", 1L, true, true));
	}

	@Test
	void aLeaseIsLostToAnotherInstanceOnly() {
		acquire("i1");
		silence("i1");
		assertThat(this.calls.error("select pgque.lease_acquire(?, 'c', 'i1', '1 minute')", this.queue))
			.satisfies(raised("instance i1 has no heartbeat within the last 00:01:00"));
		beat("i1");
		assertThat(acquire("i1")).as("nobody took it").isEqualTo(1);
		silence("i1");
		assertThat(acquire("i2")).isEqualTo(2);
		beat("i1");
		assertThat(acquire("i1")).isNull();
		silence("i2");
		assertThat(acquire("i1")).isEqualTo(3);
	}

	@Test
	void whoWaitsKnowsForHowLongAtLeast() {
		String left = "select pgque.lease_left(?, 'c') between interval '50 seconds' and interval '1 minute'";
		assertThat(this.calls.value(Boolean.class, left, this.queue)).as("nobody holds it").isNull();
		acquire("i1");
		assertThat(this.calls.value(Boolean.class, left, this.queue)).isTrue();
		silence("i1");
		assertThat(this.calls.value(Boolean.class, "select pgque.lease_left(?, 'c') < interval '0'", this.queue))
			.isTrue();
		release("i1", 1);
		assertThat(this.calls.value(Boolean.class, left, this.queue)).isNull();
		assertThat(this.calls.value(Boolean.class, "select pgque.lease_left('none', 'c') is null")).isTrue();
	}

	@Test
	void leasesNeedAConsumerAnInstanceAndATime() {
		for (String lease : new String[] { "null", "'0'", "'-1 s'" }) {
			assertThat(this.calls.error("select pgque.lease_acquire(?, 'c', 'i1', " + lease + ")", this.queue))
				.satisfies(raised("a lease needs a time > 0"));
		}
		for (String instance : new String[] { "null", "'never'" }) {
			assertThat(this.calls.error("select pgque.lease_acquire(?, 'c', " + instance + ", '1 minute')", this.queue))
				.satisfies(raised("has no heartbeat"));
		}
		assertThat(this.calls.error("select pgque.lease_acquire(?, 'nobody', 'i1', '1 minute')", this.queue))
			.satisfies(raised("Not subscriber to queue: " + this.queue + "/nobody"));
		this.calls.integer("select pgque.register_subconsumer(?, 'group', 'member')", this.queue);
		for (String consumer : new String[] { "group", "group.member" }) {
			assertThat(this.calls.error("select pgque.lease_acquire(?, ?, 'i1', '1 minute')", this.queue, consumer))
				.satisfies(raised("shared by a cooperative group"));
		}
	}

	@Test
	void theHolderReceivesAndSettles() {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1", "2", "3");
		List<Message> batch = receive("i1", 1, 2);
		assertThat(Message.payloads(batch)).containsExactly("1", "2");
		this.calls.row("select * from pgque.settle(?, ?, '{}', '{}', '{}', '{}')", batch.get(0).batch(),
				batch.get(0).id());
		List<Message> rest = receive("i1", 1, 10);
		assertThat(Message.payloads(rest)).containsExactly("2");
		assertThat(this.calls.settle(rest.get(0).batch())).isTrue();
		assertThat(Message.payloads(receive("i1", 1, 10))).containsExactly("3");
	}

	@Test
	void theHolderTicksAndReceives() {
		acquire("i1");
		this.calls.send(this.queue, "1");
		List<Tuple> rows = tickAndReceive("i1", 1);
		assertThat(rows).containsExactly(tuple("1", lastTick()));
		long batch = receive("i1", 1, 10).get(0).batch();
		assertThat(tickAndReceive("i1", 1)).as("the open batch, without a tick for nothing")
			.containsExactly(tuple("1", null));
		this.calls.send(this.queue, "2");
		this.calls.settle(batch);
		assertThat(tickAndReceive("i1", 1)).containsExactly(tuple("2", lastTick()));
	}

	@Test
	void whoHasLostTheLeaseDoesNotTick() {
		acquire("i1");
		silence("i1");
		acquire("i2");
		this.calls.send(this.queue, "1");
		long before = lastTick();
		assertThat(
				this.calls.error("select * from pgque.tick_and_receive_leased(?, 'c', 'i1', 1, 10, 1000)", this.queue)
					.state())
			.isEqualTo(LOCK_NOT_AVAILABLE);
		assertThat(lastTick()).isEqualTo(before);
	}

	@Test
	void whileSomebodyElseTicksTheHolderGetsWhatThereIs() throws Exception {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1");
		this.calls.send(this.queue, "2");
		try (Session other = Session.transactional(this.database)) {
			other.run("select * from pgque.tick_now(array['" + this.queue + "'])");
			assertThat(tickAndReceive("i1", 1)).containsExactly(tuple("1", null));
			other.commit();
		}
	}

	@Test
	void whoLocksTheConsumerKeepsNobodyWaitingForTheTick() throws Exception {
		acquire("i1");
		this.calls.send(this.queue, "1");
		long before = lastTick();
		try (Session other = Session.transactional(this.database)) {
			other.run("select pgque_internal.lock_sub('" + this.queue + "', 'c')");
			assertThat(tickAndReceive("i1", 1)).isEmpty();
			assertThat(lastTick()).isEqualTo(before + 1);
		}
		assertThat(Message.payloads(receive("i1", 1, 10))).containsExactly("1");
	}

	@Test
	void aTickThatNobodyElseWaitsForNotifiesNobody() throws Exception {
		acquire("i1");
		try (Session listener = Session.autoCommit(this.database)) {
			listener.run("listen \"pgque_" + this.queue + "\"");
			this.calls.send(this.queue, "1");
			List<Message> first = tickAndReceiveMessages();
			assertThat(Message.payloads(first)).containsExactly("1");
			assertThat(notifications(listener)).isEmpty();

			// The holder has a batch to finish first, and so may whoever takes the lease.
			this.calls.send(this.queue, "2");
			assertThat(Message.payloads(tickAndReceiveMessages())).containsExactly("1");
			assertThat(notifications(listener)).containsExactly(Long.toString(lastTick()));
			List<Message> second = settleAndReceive(first.get(0).batch(), "i1", 1);
			assertThat(Message.payloads(second)).containsExactly("2");
			assertThat(settleAndReceive(second.get(0).batch(), "i1", 1)).isEmpty();

			// The tick before is somebody else's.
			this.calls.sendTicks(this.queue, "3");
			assertThat(notifications(listener)).hasSize(1);
			this.calls.send(this.queue, "4");
			assertThat(Message.payloads(tickAndReceiveMessages())).containsExactly("3", "4");
			assertThat(notifications(listener)).containsExactly(Long.toString(lastTick()));
		}
	}

	@Test
	void aTickThatOthersWaitForNotifies() throws Exception {
		acquire("i1");
		this.calls.integer("select pgque.subscribe(?, 'other')", this.queue);
		try (Session listener = Session.autoCommit(this.database)) {
			listener.run("listen \"pgque_" + this.queue + "\"");
			this.calls.send(this.queue, "1");
			assertThat(Message.payloads(tickAndReceiveMessages())).containsExactly("1");
			assertThat(notifications(listener)).containsExactly(Long.toString(lastTick()));
		}
	}

	@Test
	void aTickThatTheCallerDoesNotReceiveNotifies() throws Exception {
		acquire("i1");
		this.calls.send(this.queue, "1");
		try (Session listener = Session.autoCommit(this.database);
				Session other = Session.transactional(this.database)) {
			listener.run("listen \"pgque_" + this.queue + "\"");
			other.run("select from pgque_internal.sub for update");
			assertThat(tickAndReceiveMessages()).isEmpty();
			assertThat(notifications(listener)).containsExactly(Long.toString(lastTick()));
		}
	}

	private List<Message> tickAndReceiveMessages() {
		return this.calls.messages("select * from pgque.tick_and_receive_leased(?, 'c', 'i1', 1, 10, 1000)",
				this.queue);
	}

	/**
	 * What the server sends along with an answer.
	 */
	private static List<String> notifications(Session session) throws SQLException {
		session.run("select 1");
		PGNotification[] notifications = session.connection().unwrap(PGConnection.class).getNotifications();
		return Arrays.stream(notifications).map(PGNotification::getParameter).toList();
	}

	@Test
	void slotsAreTickedAndReceivedOneAfterTheOther() {
		this.calls.row("select pgque.subscribe_slots(?, 'p', 1)", this.queue);
		this.calls.row("select pgque.lease_acquire(?, 'p#0/1', 'i1', interval '1 hour')", this.queue);
		assertThat(this.calls
			.error("select * from pgque.tick_and_receive_leased(?, 'p#0/1', 'i1', 1, 10, 1000)", this.queue)
			.message()).contains("slot of a partitioned consumer");
	}

	@Test
	void settlesAndReceivesInOneCall() {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1", "2", "3");
		long first = receive("i1", 1, 1).get(0).batch();
		List<Message> second = settleAndReceive(first, "i1", 1);
		assertThat(Message.payloads(second)).containsExactly("2", "3");
		assertThat(settleAndReceive(second.get(0).batch(), "i1", 1)).isEmpty();
		assertThat(receive("i1", 1, 10)).isEmpty();
	}

	@Test
	void batchThatIsNotOpenAnyMoreIsNotSettledAndNothingIsReceived() {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1", "2");
		long batch = receive("i1", 1, 1).get(0).batch();
		settleAndReceive(batch, "i1", 1);
		SqlCalls.SqlError error = settleAndReceiveError(batch, 1);
		assertThat(error.message()).contains("batch not found: " + batch);
		assertThat(Message.payloads(receive("i1", 1, 10))).containsExactly("2");
	}

	@Test
	void whoHasLostTheLeaseDoesNotSettleAndReceive() {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1", "2");
		long batch = receive("i1", 1, 1).get(0).batch();
		SqlCalls.SqlError error = settleAndReceiveError(batch, 2);
		assertThat(error.state()).isEqualTo(LOCK_NOT_AVAILABLE);
		assertThat(error.message()).contains("lease of consumer c on " + this.queue + " lost");
		assertThat(Message.payloads(receive("i1", 1, 1))).containsExactly("1");
	}

	@Test
	void restOfABatchIsSettledWithReceivingTheNextOne() {
		acquire("i1");
		this.calls.send(this.queue, "1");
		this.calls.send(this.queue, "2");
		this.calls.sendTicks(this.queue, "3", "4");
		List<Message> first = receive("i1", 1, 3);
		this.calls.row("select pgque.settle(?, ?, null, null, null, null)", first.get(0).batch(), first.get(1).id());
		List<Message> rest = receive("i1", 1, 3);
		assertThat(Message.payloads(rest)).containsExactly("3");
		assertThat(Message.payloads(settleAndReceive(rest.get(0).batch(), "i1", 1))).containsExactly("4");
	}

	@Test
	void batchesOfGroupsAndOfNobodyAreNotSettledSo() {
		this.calls.sendTicks(this.queue, "1");
		long batch = receiveUnleased().batch();
		assertThat(
				this.calls.error("select * from pgque.settle_and_receive_leased(?, null, 0, 10, 1000)", batch).state())
			.isEqualTo(LOCK_NOT_AVAILABLE);
		this.calls.settle(batch);
		acquire("i1");
		this.calls.row("select pgque.lease_release(?, 'c', 'i1', 1)", this.queue);
		this.calls.row("select pgque.join_group(?, 'c', 'm', 'i1', interval '1 hour')", this.queue);
		this.calls.sendTicks(this.queue, "2", "3");
		long members = this.calls
			.messages("select * from pgque.receive_coop_batch(?, 'c', 'm', 1, 1000, interval '1 hour')", this.queue)
			.get(0)
			.batch();
		assertThat(settleAndReceiveError(members, 0).message()).contains("several share");
	}

	private Message receiveUnleased() {
		return this.calls.messages("select * from pgque.receive_batch(?, 'c', 10, 1000)", this.queue).get(0);
	}

	private List<Message> settleAndReceive(long batch, String instance, long epoch) {
		return this.calls.messages("select * from pgque.settle_and_receive_leased(?, ?, ?, 10, 1000)", batch, instance,
				epoch);
	}

	private SqlCalls.SqlError settleAndReceiveError(long batch, long epoch) {
		return this.calls.error("select * from pgque.settle_and_receive_leased(?, 'i1', ?, 10, 1000)", batch, epoch);
	}

	private List<Tuple> tickAndReceive(String instance, long epoch) {
		return this.calls.rows("select payload, tick_id from pgque.tick_and_receive_leased(?, 'c', ?, ?, 10, 1000)",
				this.queue, instance, epoch);
	}

	private long lastTick() {
		return this.calls.value(Long.class, "select last_tick_id from pgque.get_queue_info(?)", this.queue);
	}

	@Test
	void nobodyElseReceives() {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1");
		for (String call : new String[] { "receive(?, 'c')", "receive_batch(?, 'c', 1, 1)", "next_batch(?, 'c')",
				"next_batch_info(?, 'c')", "next_batch_custom(?, 'c', null, null, null)" }) {
			SqlCalls.SqlError error = this.calls.error("select * from pgque." + call, this.queue);
			assertThat(error.state()).isEqualTo(LOCK_NOT_AVAILABLE);
			assertThat(error.message()).isEqualTo("consumer c on " + this.queue + " is leased by i1");
		}
		for (String lease : new String[] { "'i2', 1", "'i1', 2", "'i1', 0", "'i1', null", "null, 1" }) {
			assertRefused(lease);
		}
	}

	@Test
	void whoLostALeaseLearnsItFromAnIdlePollToo() {
		acquire("i1");
		assertThat(receive("i1", 1, 10)).isEmpty();
		silence("i1");
		acquire("i2");
		assertRefused("'i1', 1");
		assertThat(receive("i2", 2, 10)).isEmpty();
	}

	private void assertRefused(String lease) {
		SqlCalls.SqlError error = this.calls.error("select * from pgque.receive_leased(?, 'c', " + lease + ", 1, 1)",
				this.queue);
		assertThat(error.state()).isEqualTo(LOCK_NOT_AVAILABLE);
		assertThat(error.message()).startsWith("lease of consumer c on " + this.queue + " lost");
	}

	@Test
	void aTakeoverVoidsTheOpenBatch() {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1");
		Message lost = receive("i1", 1, 10).get(0);
		silence("i1");
		acquire("i2");
		assertVoid(lost);
		Message again = receive("i2", 2, 10).get(0);
		assertThat(again.id()).isEqualTo(lost.id());
		assertThat(again.retryCount()).as("has not failed").isNull();
		assertVoid(lost);
		assertThat(this.calls.settle(again.batch())).isTrue();
	}

	private void assertVoid(Message message) {
		assertThat(this.calls.row("select * from pgque.settle(?, null, array[?]::bigint[], '{1 s}', '{why}', '{f}')",
				message.batch(), message.id()))
			.extracting(Tuple::toList)
			.asInstanceOf(InstanceOfAssertFactories.LIST)
			.startsWith(false, 0);
		assertThat(this.calls.integer("select pgque.ack(?)", message.batch())).isZero();
		assertThat(this.calls.error("select * from pgque.receive_page(?, 0, 1, 1)", message.batch()))
			.satisfies(raised("batch not found"));
		assertThat(this.calls.error("select pgque.event_retry(?, ?, 1)", message.batch(), message.id()))
			.satisfies(raised("batch not found"));
		assertThat(this.calls.rows(
				"select from pgque.retry_queue where ev_owner in (select sub_id"
						+ " from pgque.subscription join pgque.queue on queue_id = sub_queue where queue_name = ?)",
				this.queue))
			.isEmpty();
	}

	@Test
	void whatWasGivenBackBeforeATakeoverWaitsForTheHeir() {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1");
		Message lost = receive("i1", 1, 10).get(0);
		this.calls.nack(lost.batch(), lost.id());
		silence("i1");
		acquire("i2");
		this.calls.redeliver(this.queue);
		Message again = receive("i2", 2, 10).get(0);
		assertThat(this.calls.settle(again.batch())).isTrue();
		this.calls.redeliver(this.queue);
		assertThat(receive("i2", 2, 10)).extracting(Message::id, Message::retryCount)
			.containsExactly(tuple(lost.id(), 1));
	}

	@Test
	void aPlainReceiveVoidsTheBatchOfADeadHolder() {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1");
		Message lost = receive("i1", 1, 10).get(0);
		silence("i1");
		Message again = this.calls.messages("select * from pgque.receive(?, 'c')", this.queue).get(0);
		assertThat(again.id()).isEqualTo(lost.id());
		assertVoid(lost);
		assertThat(this.calls.integer("select pgque.ack(?)", again.batch())).isEqualTo(1);
		beat("i1");
		assertRefused("'i1', 1");
	}

	@Test
	void aReleaseWakesListenersAndVoidsTheOpenBatch() throws Exception {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1");
		Message given = receive("i1", 1, 10).get(0);
		try (Connection connection = this.database.connect(); Statement statement = connection.createStatement()) {
			statement.execute("listen \"pgque_" + this.queue + "\"");
			assertThat(release("i2", 1)).isFalse();
			assertThat(release("i1", 2)).isFalse();
			assertThat(release("i1", null)).isFalse();
			assertThat(release(null, 1L)).isFalse();
			assertThat(release("i1", 1)).isTrue();
			assertThat(release("i1", 1)).isFalse();
			assertThat(notifications(connection)).containsExactly("lease c");
		}
		assertVoid(given);
		assertThat(acquire("i2")).isEqualTo(3);
		assertThat(receive("i2", 3, 10)).extracting(Message::payload).containsExactly("1");
	}

	@Test
	void maintenanceGivesUpTheLeasesOfTheDead() throws Exception {
		acquire("i1");
		this.calls.sendTicks(this.queue, "1");
		Message lost = receive("i1", 1, 10).get(0);
		this.calls.integer("select pgque.maint()");
		assertThat(leases()).as("alive").containsExactly(tuple("i1", true));
		silence("i1");
		assertThat(leases()).containsExactly(tuple("i1", false));
		try (Connection connection = this.database.connect(); Statement statement = connection.createStatement()) {
			statement.execute("listen \"pgque_" + this.queue + "\"");
			this.calls.integer("select pgque.maint()");
			assertThat(notifications(connection)).containsExactly("lease c");
		}
		assertThat(leases()).isEmpty();
		assertVoid(lost);
		assertThat(Message.payloads(this.calls.messages("select * from pgque.receive(?, 'c')", this.queue)))
			.containsExactly("1");
	}

	@Test
	void maintenanceForgetsInstancesAfterADay() {
		beat("old");
		this.calls.update("update pgque_internal.instance set ins_heartbeat = now() - interval '25 hours'"
				+ " where ins_name = 'old'");
		silence("i1");
		this.calls.integer("select pgque.maint()");
		assertThat(this.calls.values(String.class, "select ins_name from pgque_internal.instance")).contains("i1")
			.doesNotContain("old");
	}

	@Test
	void aLeaseIsWrittenOnlyWhenItIsTakenOrGivenUp() {
		acquire("i1");
		String version = "select s.xmin::text from pgque_internal.sub s join pgque.queue on queue_id = sub_queue"
				+ " where queue_name = ?";
		String before = this.calls.value(String.class, version, this.queue);
		for (int i = 0; i < 3; i++) {
			beat("i1");
			acquire("i1");
			acquire("i2");
			this.calls.sendTicks(this.queue, "1");
			this.calls.settle(receive("i1", 1, 10).get(0).batch());
		}
		assertThat(this.calls.value(String.class, version, this.queue)).isEqualTo(before);
		assertThat(this.calls.value(Long.class, "select count(*) from pgque_internal.instance where ins_name = 'i1'"))
			.isEqualTo(1);
		release("i1", 1);
		assertThat(this.calls.value(String.class, version, this.queue)).isNotEqualTo(before);
	}

	@Test
	void aSlotIsLeasedByItsName() {
		this.calls.integer("select pgque.subscribe_slots(?, 'p', 2)", this.queue);
		String acquire = "select pgque.lease_acquire(?, 'p#0/2', 'i1', '1 minute')";
		this.calls.id("select pgque.claim_slot(?, 'p', 0, 'worker')", this.queue);
		assertThat(this.calls.value(Long.class, acquire, this.queue)).as("claimed").isNull();
		this.calls.row("select pgque.release_slot(?, 'p', 0, 'worker')", this.queue);
		assertThat(this.calls.value(Long.class, acquire, this.queue)).isEqualTo(1);
		assertThat(this.calls.value(Long.class, "select pgque.claim_slot(?, 'p', 0, 'worker')", this.queue))
			.as("leased")
			.isNull();
		this.calls.sendKeyed(this.queue, "tenant-a", "a");
		this.calls.sendKeyed(this.queue, "tenant-b", "b");
		this.calls.tick(this.queue);
		String receive = "select * from pgque.receive_leased(?, 'p#0/2', 'i1', 1, 10, 1000)";
		Message message = this.calls.messages(receive, this.queue).get(0);
		assertThat(message.payload()).isEqualTo("a");
		assertThat(this.calls.settle(message.batch())).isTrue();
		assertThat(this.calls.messages(receive, this.queue)).isEmpty();
	}

	@Test
	void aLeaseFencesTheClaimOfASlotThatRanOut() {
		this.calls.integer("select pgque.subscribe_slots(?, 'p', 1)", this.queue);
		this.calls.id("select pgque.claim_slot(?, 'p', 0, 'worker')", this.queue);
		this.calls.sendTicks(this.queue, "1");
		String receive = "select * from pgque.receive_partitioned(?, 'p', 0, 1, 'worker')";
		Message lost = this.calls.messages(receive, this.queue).get(0);
		this.calls.update("update pgque.partition_slot set lease_until = now() where lease_owner = 'worker'");
		assertThat(this.calls.value(Long.class, "select pgque.lease_acquire(?, 'p#0/1', 'i1', '1 minute')", this.queue))
			.isEqualTo(1);
		for (String call : new String[] { receive, "select pgque.ack_partitioned(?, 'p', 0, 1, 'worker')" }) {
			assertThat(this.calls.error(call, this.queue)).satisfies(raised("held by instance i1", "fenced"));
		}
		silence("i1");
		Message again = this.calls.messages(receive, this.queue).get(0);
		assertThat(again.id()).isEqualTo(lost.id());
		assertThat(again.batch()).isNotEqualTo(lost.batch());
		beat("i1");
		assertThat(
				this.calls.error("select * from pgque.receive_leased(?, 'p#0/1', 'i1', 1, 1, 1)", this.queue).state())
			.isEqualTo(LOCK_NOT_AVAILABLE);
	}

	@Test
	void aLeasedSlotStopsWhereTheNumberOfSlotsChanges() {
		this.calls.integer("select pgque.subscribe_slots(?, 'p', 1)", this.queue);
		this.calls.id("select pgque.lease_acquire(?, 'p#0/1', 'i1', '1 minute')", this.queue);
		String receive = "select * from pgque.receive_leased(?, 'p#0/1', 'i1', 1, 10, 1000)";
		this.calls.sendTicks(this.queue, "1");
		Boolean changed = this.calls.value(Boolean.class, "select pgque.change_partitions(?, 'p', 0)", this.queue);
		assertThat(changed).isFalse();
		this.calls.sendTicks(this.queue, "2");
		List<Message> batch = this.calls.messages(receive, this.queue);
		assertThat(Message.payloads(batch)).containsExactly("1");
		assertThat(this.calls.settle(batch.get(0).batch())).isTrue();
		assertThat(this.calls.messages(receive, this.queue)).isEmpty();
		this.calls.integer("select pgque.maint()");
		assertThat(Message.payloads(this.calls.messages("select * from pgque.receive(?, 'p')", this.queue)))
			.containsExactly("2");
	}

	@Test
	void aLeasedConsumerKeepsItsKind() {
		acquire("i1");
		assertThat(this.calls.error("select pgque.register_subconsumer(?, 'c', 'member', true)", this.queue))
			.satisfies(raised("cannot convert active normal consumer"));
		assertThat(this.calls.error("select pgque.change_partitions(?, 'c', 2)", this.queue))
			.satisfies(raised("cannot convert active normal consumer"));
	}

	@Test
	void readersLeaseAndWritersDoNot() {
		SqlCalls reader = new SqlCalls(this.database.createLogin("pgque_reader").dataSource());
		SqlCalls writer = new SqlCalls(this.database.createLogin("pgque_writer").dataSource());
		for (String call : new String[] { "instance_beat('i3')", "lease_acquire('%s', 'c', 'i3', '1 minute')",
				"receive_leased('%s', 'c', 'i3', 1, 1, 1)", "leases()", "lease_release('%s', 'c', 'i3', 1)" }) {
			String sql = "select * from pgque." + call.formatted(this.queue);
			reader.rows(sql);
			assertThat(writer.error(sql).state()).isEqualTo("42501");
		}
	}

	private void beat(String instance) {
		this.calls.row("select pgque.instance_beat(?)", instance);
	}

	/**
	 * Let the last heartbeat of an instance be an hour old.
	 */
	private void silence(String instance) {
		this.calls.update(
				"update pgque_internal.instance set ins_heartbeat = now() - interval '1 hour'" + " where ins_name = ?",
				instance);
	}

	private Long acquire(String instance) {
		return this.calls.value(Long.class, "select pgque.lease_acquire(?, 'c', ?, '1 minute')", this.queue, instance);
	}

	private boolean release(String instance, long epoch) {
		return release(instance, Long.valueOf(epoch));
	}

	private boolean release(String instance, Long epoch) {
		return Boolean.TRUE.equals(this.calls.value(Boolean.class, "select pgque.lease_release(?, 'c', ?, ?)",
				this.queue, instance, epoch));
	}

	private List<Message> receive(String instance, long epoch, int maxRows) {
		return this.calls.messages("select * from pgque.receive_leased(?, 'c', ?, ?, ?, 1000)", this.queue, instance,
				epoch, maxRows);
	}

	private List<Tuple> leases() {
		return this.calls.rows("select instance, alive from pgque.leases() where queue_name = ?", this.queue);
	}

	private List<String> notifications(Connection connection) throws Exception {
		PGNotification[] notifications = connection.unwrap(PGConnection.class).getNotifications(5000);
		return List.of(notifications).stream().map(PGNotification::getParameter).toList();
	}

}
