package io.pgque.core;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.stream.IntStream;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.BatchNotOpenException;
import io.pgque.PgqueException;
import io.pgque.SubscriptionNotFoundException;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/**
 * Tests for receiving with {@link PgqueTemplate}.
 */
@PgqueDatabase
class TemplateReceiveTests {

	private static int number;

	private final TestDatabase database;

	private final String queue = "received" + (++number);

	private HikariDataSource pool;

	private PgqueClient client;

	private PgqueTemplate template;

	TemplateReceiveTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void setUp() {
		this.pool = this.database.pool(3);
		this.client = new PgqueClient(this.pool);
		this.template = new PgqueTemplate(this.pool, new Jackson2MessageConverter());
		this.client.createQueue(this.queue);
		this.client.subscribe(this.queue, "c");
	}

	@AfterEach
	void nothingIsHeld() {
		assertThat(this.pool.getHikariPoolMXBean().getActiveConnections()).isZero();
		this.pool.close();
	}

	private void send(String... payloads) {
		this.template.sendBatch(this.queue, List.of(payloads));
		this.client.tick(List.of(this.queue));
	}

	private List<String> receive() {
		List<String> payloads = new ArrayList<>();
		try (ReceivedBatch batch = this.template.receive(this.queue, "c")) {
			batch.forEach((message) -> payloads.add(message.payload()));
		}
		return payloads;
	}

	private void retryNow() {
		this.database.update("update pgque.retry_queue set ev_retry_after = now() - interval '1 second'");
		this.client.moveDueRetries();
		this.client.tick(List.of(this.queue));
	}

	@Test
	void whatWasIteratedOverIsSettledByTheClose() {
		assertThat(receive()).isEmpty();
		this.template.send(this.queue, (message) -> message.payload("a").type("t").key("k").header("h", "v"));
		send("b");
		try (ReceivedBatch batch = this.template.receive(this.queue, "c")) {
			assertThat(batch.isEmpty()).isFalse();
			Iterator<PgqueMessage> messages = batch.iterator();
			PgqueMessage first = messages.next();
			assertThat(first.batchId()).isEqualTo(batch.id());
			assertThat(first)
				.extracting(PgqueMessage::queue, PgqueMessage::consumer, PgqueMessage::type, PgqueMessage::payload,
						PgqueMessage::key)
				.containsExactly(this.queue, "c", "t", "a", "k");
			assertThat(first.headers()).containsEntry("h", "v");
			assertThat(messages.next().payload()).isEqualTo("b");
			assertThat(messages.hasNext()).isFalse();
			assertThatExceptionOfType(NoSuchElementException.class).isThrownBy(messages::next);
		}
		assertThat(receive()).isEmpty();
	}

	@Test
	void largeBatchIsReadPageByPage() {
		int messages = 2 * BatchReader.PAGE_SIZE + 7;
		String[] payloads = IntStream.range(0, messages).mapToObj(Integer::toString).toArray(String[]::new);
		send(payloads);
		assertThat(receive()).containsExactly(payloads);
		assertThat(receive()).isEmpty();
	}

	@Test
	void messageAtWhichAnExceptionIsThrownComesAgainWithThoseBehind() {
		send("a", "b", "c");
		List<String> seen = new ArrayList<>();
		assertThatIllegalStateException().isThrownBy(() -> {
			try (ReceivedBatch batch = this.template.receive(this.queue, "c")) {
				for (PgqueMessage message : batch) {
					seen.add(message.payload());
					if ("b".equals(message.payload())) {
						throw new IllegalStateException("no");
					}
				}
			}
		});
		assertThat(seen).containsExactly("a", "b");
		try (ReceivedBatch batch = this.template.receive(this.queue, "c")) {
			assertThat(batch).extracting(PgqueMessage::payload, PgqueMessage::deliveryAttempt)
				.containsExactly(org.assertj.core.groups.Tuple.tuple("b", 1),
						org.assertj.core.groups.Tuple.tuple("c", 1));
		}
	}

	@Test
	void batchThatIsNotLookedAtComesAgain() {
		send("a");
		this.template.receive(this.queue, "c").close();
		assertThat(receive()).containsExactly("a");
	}

	@Test
	void messagesAreGivenBackAndGivenUp() {
		send("a", "b", "c", "d");
		PgqueMessage strange;
		try (ReceivedBatch batch = this.template.receive(this.queue, "c")) {
			Iterator<PgqueMessage> messages = batch.iterator();
			PgqueMessage first = messages.next();
			PgqueMessage second = messages.next();
			batch.retry(first, Duration.ofMillis(50), "later \0");
			batch.deadLetter(second, "never");
			strange = messages.next();
			batch.retry(strange, Duration.ofHours(1), null);
		}
		assertThat(receive()).containsExactly("d");
		assertThat(this.client.deadLetters(this.queue, 10)).singleElement()
			.satisfies((row) -> assertThat(row.reason()).isEqualTo("never"));
		retryNow();
		try (ReceivedBatch batch = this.template.receive(this.queue, "c")) {
			assertThatIllegalArgumentException().isThrownBy(() -> batch.retry(strange, Duration.ZERO, null))
				.withMessageContaining("is none of those that the batch has returned so far");
			assertThat(batch).extracting(PgqueMessage::payload, PgqueMessage::deliveryAttempt)
				.containsExactly(org.assertj.core.groups.Tuple.tuple("a", 2),
						org.assertj.core.groups.Tuple.tuple("c", 2));
		}
	}

	@Test
	void batchOfSomebodyElseIsNotSettled() {
		send("a");
		ReceivedBatch batch = this.template.receive(this.queue, "c");
		batch.iterator().forEachRemaining((message) -> assertThat(message.payload()).isEqualTo("a"));
		assertThat(this.template.ack(batch.id())).isTrue();
		assertThatExceptionOfType(BatchNotOpenException.class).isThrownBy(batch::close)
			.satisfies((ex) -> assertThat(ex.getBatchId()).isEqualTo(batch.id()))
			.withMessageContaining("of consumer 'c' of queue '" + this.queue + "' was no longer open");
		batch.close();
		assertThatIllegalStateException().isThrownBy(() -> batch.iterator().hasNext());
	}

	@Test
	void messagesAreNackedAndTheBatchAcked() {
		send("a", "b");
		PgqueMessage first;
		try (ReceivedBatch batch = this.template.receive(this.queue, "c")) {
			first = batch.iterator().next();
			assertThat(this.template.nack(first, Duration.ofSeconds(30), "later")).isTrue();
			assertThat(this.template.ack(batch.id())).isTrue();
		}
		assertThat(this.template.ack(first.batchId())).isFalse();
		assertThat(this.template.nack(first, Duration.ofSeconds(30), "later")).isFalse();
		assertThat(receive()).isEmpty();
		retryNow();
		assertThat(receive()).containsExactly("a");
	}

	@Test
	void receivingAndSettlingBelongToTheTransaction() {
		TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(this.pool));
		send("a");
		transaction.executeWithoutResult((status) -> {
			assertThat(receive()).containsExactly("a");
			this.template.send(this.queue, "b");
			status.setRollbackOnly();
		});
		transaction.executeWithoutResult((status) -> assertThat(receive()).containsExactly("a"));
		assertThat(receive()).isEmpty();
	}

	@Test
	void whoMayNotReceiveIsTold() {
		assertThatExceptionOfType(SubscriptionNotFoundException.class)
			.isThrownBy(() -> this.template.receive(this.queue, "nobody"));
		this.client.sharing().subscribeSlots(this.queue, "divided", 2);
		assertThatExceptionOfType(SubscriptionNotFoundException.class)
			.isThrownBy(() -> this.template.receive(this.queue, "divided"));
		send("a");
		this.database.query("select pgque.instance_beat('listener'),"
				+ " pgque.lease_acquire(?, 'c', 'listener', interval '1 minute')", this.queue);
		assertThatExceptionOfType(PgqueException.class).isThrownBy(() -> this.template.receive(this.queue, "c"))
			.withMessageContaining("consumer c on " + this.queue + " is leased by listener");
	}

}
