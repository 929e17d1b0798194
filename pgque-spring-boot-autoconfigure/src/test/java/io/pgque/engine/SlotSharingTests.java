package io.pgque.engine;

import java.util.List;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static io.pgque.engine.SqlCalls.SqlError.raised;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * Instances that share the slots of a partitioned consumer.
 */
@PgqueDatabase
class SlotSharingTests {

	TestDatabase database;

	private SqlCalls calls;

	private String queue;

	@BeforeEach
	void subscribe() {
		this.calls = new SqlCalls(this.database);
		this.queue = this.calls.queue();
		this.calls.integer("select pgque.subscribe_slots(?, 'p', 5)", this.queue);
		beat("i1");
		beat("i2");
		beat("i3");
	}

	@Test
	void oneInstanceTakesThemAll() {
		assertThat(claim("i1")).hasSize(5).allSatisfy((slot) -> {
			assertThat(slot.toList().get(1)).isEqualTo(1L);
			assertThat(slot.toList().get(2)).isEqualTo(false);
		});
		assertThat(claim("i1")).as("and keeps them").hasSize(5);
	}

	@Test
	void slotsMoveUntilAllHaveTheSameButForOne() {
		claim("i1");
		assertThat(claim("i2")).isEmpty();
		assertThat(surplus("i1")).hasSize(2);
		give("i1");
		assertThat(claim("i2")).hasSize(2);
		assertThat(claim("i3")).isEmpty();
		give("i1");
		give("i2");
		claim("i3");
		assertThat(List.of(claim("i1").size(), claim("i2").size(), claim("i3").size())).containsExactly(2, 2, 1);
		assertThat(
				this.calls.rows("select distinct consumer_name from pgque.leases() where queue_name = ?", this.queue))
			.hasSize(5);
		assertThat(surplus("i1")).isEmpty();
	}

	@Test
	void whoLeavesHasNoShareAnyMore() {
		claim("i1");
		claim("i2");
		give("i1");
		claim("i2");
		this.calls.row("select pgque.leave_slots(?, 'p', 'i1')", this.queue);
		assertThat(claim("i2")).as("the others are not given up yet").hasSize(2);
		this.calls.rows("select pgque.lease_release(queue_name, consumer_name, instance, epoch) from pgque.leases()"
				+ " where queue_name = ? and instance = 'i1'", this.queue);
		assertThat(claim("i2")).hasSize(5);
	}

	@Test
	void whoDiesLosesItsSlots() {
		claim("i1");
		assertThat(claim("i2")).isEmpty();
		this.calls.update("update pgque_internal.instance set ins_heartbeat = now() - interval '1 hour'"
				+ " where ins_name = 'i1'");
		assertThat(claim("i2")).hasSize(5).allSatisfy((slot) -> assertThat(slot.toList().get(1)).isEqualTo(2L));
		assertThat(this.calls.error("select * from pgque.claim_slots(?, 'p', 5, 'i1', '1 minute')", this.queue))
			.satisfies(raised("instance i1 has no heartbeat within the last 00:01:00"));
		beat("i1");
		assertThat(claim("i1")).isEmpty();
	}

	@Test
	void theNumberOfSlotsIsChecked() {
		assertThat(this.calls.error("select * from pgque.claim_slots(?, 'p', 4, 'i1', '1 minute')", this.queue))
			.satisfies(raised("has n=5, not n=4"));
		assertThat(this.calls.error("select * from pgque.claim_slots(?, 'q', 4, 'i1', '1 minute')", this.queue))
			.satisfies(raised("is not a partitioned consumer"));
		assertThat(this.calls.error("select * from pgque.claim_slots(?, 'p', null, 'i1', '1 minute')", this.queue))
			.satisfies(raised("the number of slots is needed"));
	}

	private List<Tuple> claim(String instance) {
		return this.calls.rows("select slot, epoch, surplus from pgque.claim_slots(?, 'p', 5, ?, '1 minute')",
				this.queue, instance);
	}

	private List<Tuple> surplus(String instance) {
		return claim(instance).stream().filter((slot) -> Boolean.TRUE.equals(slot.toList().get(2))).toList();
	}

	private void give(String instance) {
		for (Tuple slot : surplus(instance)) {
			this.calls.value(Boolean.class, "select pgque.lease_release(?, ?, ?, ?)", this.queue,
					"p#" + slot.toList().get(0) + "/5", instance, slot.toList().get(1));
		}
	}

	private void beat(String instance) {
		this.calls.row("select pgque.instance_beat(?)", instance);
	}

}
