package io.pgque.core;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.InvalidMessageException;
import io.pgque.InvalidNameException;
import io.pgque.QueueNotFoundException;
import io.pgque.client.EventRow;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.support.header.HeaderColumn;
import io.pgque.support.header.PgqueHeaders;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.awaitility.Awaitility.await;

/**
 * Tests for {@link PgqueTemplate}.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class PgqueTemplateTests {

	private static int number;

	private static HikariDataSource clientPool;

	private final TestDatabase database;

	private final String queue = "queue" + (++number);

	private final List<Set<String>> commits = new ArrayList<>();

	private final PgqueClient client;

	private HikariDataSource pool;

	private PgqueTemplate template;

	private JdbcTransactionManager transactionManager;

	PgqueTemplateTests(TestDatabase database) {
		this.database = database;
		this.client = new PgqueClient(clientPool);
	}

	@BeforeAll
	static void createPool(TestDatabase database) {
		clientPool = database.pool(2);
	}

	@BeforeEach
	void setUp() {
		use(this.database.pool(2));
		this.client.createQueue(this.queue);
		this.client.subscribe(this.queue, "c");
	}

	@AfterEach
	void nothingIsLeftOnTheThread() {
		assertThat(TransactionSynchronizationManager.getResourceMap()).isEmpty();
		assertThat(this.pool.getHikariPoolMXBean().getActiveConnections()).isZero();
		this.pool.close();
	}

	private void use(HikariDataSource dataSource) {
		this.pool = dataSource;
		this.template = template(dataSource);
		this.transactionManager = new JdbcTransactionManager(dataSource);
	}

	private PgqueTemplate template(DataSource dataSource) {
		PgqueTemplate created = new PgqueTemplate(dataSource, new Jackson2MessageConverter());
		created.setCommitListener(this.commits::add);
		return created;
	}

	private TransactionTemplate transaction() {
		return new TransactionTemplate(this.transactionManager);
	}

	private List<PgqueMessage> received() {
		this.client.tickAll();
		List<EventRow> rows = this.client.receiveBatch(this.queue, "c", 1000, 1_000_000).rows();
		if (!rows.isEmpty()) {
			this.client.settle(rows.get(0).batchId(), null, List.of());
		}
		return rows.stream().map((row) -> PgqueMessage.from(this.queue, "c", row, HeaderColumn.EXTRA4)).toList();
	}

	private List<String> receivedPayloads() {
		return received().stream().map(PgqueMessage::payload).toList();
	}

	@Test
	void sendsObjectsStringsAndBytes() {
		long id = this.template.send(this.queue, new OrderPlaced(7));
		this.template.send(this.queue, " {\"a\" : 1} ");
		this.template.send(this.queue, "b\u00e4".getBytes(StandardCharsets.UTF_8));
		this.template.send(this.queue, "order.cancelled", Map.of("id", 7));
		this.template.send(this.queue, "nothing", null);
		List<PgqueMessage> messages = received();
		assertThat(messages).extracting(PgqueMessage::type)
			.containsExactly("OrderPlaced", "default", "default", "order.cancelled", "nothing");
		assertThat(messages).extracting(PgqueMessage::payload)
			.containsExactly("{\"id\":7}", " {\"a\" : 1} ", "b\u00e4", "{\"id\":7}", null);
		assertThat(messages.get(0).id()).isEqualTo(id);
		assertThat(messages.get(0).deliveryAttempt()).isOne();
		assertThat(messages.get(0).headers()).isEmpty();
	}

	@Test
	void sendsWhatTheSpecSays() {
		this.template.send(this.queue,
				(spec) -> spec.payload(new OrderPlaced(1))
					.type("t")
					.key("k")
					.header("a", "1")
					.headers(Map.of("b", "\u00fc"))
					.extra2("e2")
					.extra3("e3"));
		PgqueMessage message = received().get(0);
		assertThat(message.type()).isEqualTo("t");
		assertThat(message.key()).isEqualTo("k");
		assertThat(message.extra2()).isEqualTo("e2");
		assertThat(message.extra3()).isEqualTo("e3");
		assertThat(message.extra4()).isEqualTo("{\"a\":\"1\",\"b\":\"\u00fc\"}");
		assertThat(message.headers()).isEqualTo(Map.of("a", "1", "b", "\u00fc"));
	}

	@Test
	void sendsSpringMessage() {
		UUID uuid = UUID.randomUUID();
		this.template.send(MessageBuilder.withPayload(new OrderPlaced(1))
			.setHeader(PgqueHeaders.QUEUE, this.queue)
			.setHeader(PgqueHeaders.TYPE, "t")
			.setHeader(PgqueHeaders.KEY, "k")
			.setHeader(PgqueHeaders.MESSAGE_ID, 99L)
			.setHeader("text", "x")
			.setHeader("number", 1)
			.setHeader("uuid", uuid)
			.setHeader("object", new Object())
			.build());
		PgqueMessage message = received().get(0);
		assertThat(message.type()).isEqualTo("t");
		assertThat(message.key()).isEqualTo("k");
		assertThat(message.headers()).isEqualTo(Map.of("text", "x", "number", "1", "uuid", uuid.toString()));
		this.template.send(this.queue, MessageBuilder.withPayload("x").setHeader("a", "1").build());
		PgqueMessage other = received().get(0);
		assertThat(other.payload()).isEqualTo("x");
		assertThat(other.headers()).isEqualTo(Map.of("a", "1"));
		assertThatExceptionOfType(InvalidMessageException.class)
			.isThrownBy(() -> this.template.send(MessageBuilder.withPayload("x").build()))
			.withMessageContaining(PgqueHeaders.QUEUE);
	}

	@Test
	void headersGoWhereTheyAreToldTo() {
		this.template.setHeaderColumn(HeaderColumn.EXTRA3);
		this.template.send(this.queue, (spec) -> spec.payload("x").header("a", "1").extra4("mine"));
		PgqueMessage message = received().get(0);
		assertThat(message.extra3()).isEqualTo("{\"a\":\"1\"}");
		assertThat(message.extra4()).isEqualTo("mine");
		assertThatExceptionOfType(InvalidMessageException.class)
			.isThrownBy(
					() -> this.template.send(this.queue, (spec) -> spec.payload("x").header("a", "1").extra3("mine")))
			.withMessageContaining("extra3");
		this.template.setHeaderColumn(HeaderColumn.NONE);
		assertThatExceptionOfType(InvalidMessageException.class)
			.isThrownBy(() -> this.template.send(this.queue, (spec) -> spec.payload("x").header("a", "1")))
			.withMessageContaining("pgque.headers.column");
	}

	@Test
	void sendsBatchesAlignedWithTheirIds() {
		List<Long> ids = this.template.sendBatch(this.queue, Arrays.asList("a", null, "c"));
		List<Long> mixed = this.template.sendBatch(this.queue, List.of(new OrderPlaced(1), "d"));
		List<Long> typed = this.template.sendBatch(this.queue, "t", List.of(new OrderPlaced(2), "e"));
		assertThat(this.template.sendBatch(this.queue, List.of())).isEmpty();
		List<PgqueMessage> messages = received();
		assertThat(messages).extracting(PgqueMessage::id)
			.containsExactly(ids.get(0), ids.get(1), ids.get(2), mixed.get(0), mixed.get(1), typed.get(0),
					typed.get(1));
		assertThat(messages).extracting(PgqueMessage::payload)
			.containsExactly("a", null, "c", "{\"id\":1}", "d", "{\"id\":2}", "e");
		assertThat(messages).extracting(PgqueMessage::type)
			.containsExactly("default", "default", "default", "OrderPlaced", "default", "t", "t");
		assertThat(this.commits).containsOnly(Set.of(this.queue)).hasSize(3);
	}

	@Test
	void batchIsTenTimesAsFastAsALoop() {
		List<String> payloads = IntStream.range(0, 1000).mapToObj((i) -> "payload " + i).toList();
		List<Double> ratios = new ArrayList<>();
		for (int round = 0; round < 5; round++) {
			long begin = System.nanoTime();
			payloads.forEach((payload) -> this.template.send(this.queue, payload));
			long loop = System.nanoTime() - begin;
			begin = System.nanoTime();
			this.template.sendBatch(this.queue, payloads);
			ratios.add((double) loop / (System.nanoTime() - begin));
		}
		assertThat(ratios).as("one of five, on a busy machine").anyMatch((ratio) -> ratio >= 10);
	}

	@Test
	void springMessagesAreMessagesEverywhere() {
		var message = MessageBuilder.withPayload(new OrderPlaced(1))
			.setHeader(PgqueHeaders.KEY, "k")
			.setHeader("a", "1")
			.build();
		this.template.send(this.queue, "stated", message);
		this.template.sendBatch(this.queue, List.of(message, "plain"));
		this.template.sendBatch(this.queue, "stated", List.of("plain", message));
		this.template.sendLater(this.queue, message);
		List<PgqueMessage> messages = received();
		assertThat(messages).extracting(PgqueMessage::payload)
			.containsExactly("{\"id\":1}", "{\"id\":1}", "plain", "plain", "{\"id\":1}", "{\"id\":1}");
		assertThat(messages).extracting(PgqueMessage::type)
			.containsExactly("stated", "OrderPlaced", "default", "stated", "stated", "OrderPlaced");
		assertThat(messages).extracting(PgqueMessage::key).containsExactly("k", "k", null, null, "k", "k");
		assertThat(messages).extracting((received) -> received.headers().get("a"))
			.containsExactly("1", "1", null, null, "1", "1");
	}

	@Test
	void sendsOnceForAKey(CapturedOutput output) {
		SendResult first = this.template.sendForResult(this.queue,
				(spec) -> spec.payload("paid").key("k").idempotencyKey("order-7-paid").header("h", "1").extra3("e3"));
		SendResult again = this.template.sendForResult(this.queue,
				(spec) -> spec.payload("paid").idempotencyKey("order-7-paid", Duration.ofDays(1)));
		assertThat(first).isEqualTo(new SendResult(first.id(), false, false));
		assertThat(again).isEqualTo(new SendResult(first.id(), true, false));
		assertThat(output).doesNotContain("idempotency key");
		assertThat(this.template.send(this.queue, (spec) -> spec.payload("shipped").idempotencyKey("order-7-paid")))
			.isEqualTo(first.id());
		assertThat(output).contains("idempotency key").contains("effect");
		this.template.send(this.queue, (spec) -> spec.payload("shipped").idempotencyKey("order-7-shipped"));
		List<PgqueMessage> messages = received();
		assertThat(messages).extracting(PgqueMessage::payload).containsExactly("paid", "shipped");
		assertThat(messages.get(0).key()).isEqualTo("k");
		assertThat(messages.get(0).extra2()).isEqualTo("order-7-paid");
		assertThat(messages.get(0).extra3()).isEqualTo("e3");
		assertThat(messages.get(0).headers()).isEqualTo(Map.of("h", "1"));
		assertThatExceptionOfType(InvalidMessageException.class)
			.isThrownBy(() -> this.template.send(this.queue,
					(spec) -> spec.payload("x").idempotencyKey("k").deliverAfter(Duration.ofSeconds(1))))
			.withMessageContaining("time of delivery");
		assertThatExceptionOfType(InvalidMessageException.class).isThrownBy(
				() -> this.template.send(this.queue, (spec) -> spec.payload("x").idempotencyKey("k").extra2("mine")))
			.withMessageContaining("extra2");
	}

	@Test
	void sendsAtATimeOrAfterADelay() {
		this.template.send(this.queue, (spec) -> spec.payload("past").deliverAt(Instant.now().minusSeconds(60)));
		this.template.send(this.queue,
				(spec) -> spec.payload("soon").type("t").key("k").header("h", "1").deliverAfter(Duration.ofMillis(50)));
		long id = this.template.send(this.queue,
				(spec) -> spec.payload("late").deliverAt(Instant.now().plusSeconds(3600)));
		assertThat(receivedPayloads()).containsExactly("past");
		List<PgqueMessage> due = new ArrayList<>();
		await().until(() -> {
			this.client.deliverDelayed();
			due.addAll(received());
			return !due.isEmpty();
		});
		assertThat(due).singleElement().satisfies((message) -> {
			assertThat(message.payload()).isEqualTo("soon");
			assertThat(message.type()).isEqualTo("t");
			assertThat(message.key()).isEqualTo("k");
			assertThat(message.headers()).isEqualTo(Map.of("h", "1"));
		});
		assertThat(this.template.cancelDelayed(this.queue, id)).isTrue();
		assertThat(this.template.cancelDelayed(this.queue, id)).isFalse();
	}

	@Test
	void schemaVersionTravelsWhenThereIsOne() {
		this.template.send(this.queue, new OrderPlaced(1));
		this.template.send(this.queue, new OrderMoved(2));
		this.template.send(this.queue, (spec) -> spec.payload(new OrderMoved(3)).header("schema-version", "2"));
		this.template.sendBatch(this.queue, List.of(new OrderMoved(4)));
		assertThat(received()).extracting((message) -> message.headers().get(PgqueHeaders.SCHEMA_VERSION))
			.containsExactly(null, "3", "2", "3");
		this.template.setHeaderColumn(HeaderColumn.NONE);
		assertThatExceptionOfType(InvalidMessageException.class)
			.isThrownBy(() -> this.template.send(this.queue, new OrderMoved(2)))
			.withMessageContaining("pgque.headers.column");
	}

	@Test
	void payloadMayBeTooLarge() {
		this.template.setMaxPayloadBytes(6);
		this.template.send(this.queue, "abcdef");
		this.template.send(this.queue, "\u00e4\u00e4\u00e4");
		this.template.send(this.queue, "\u20ac\u20ac");
		for (String payload : List.of("abcdefg", "a\u20ac\u20ac", "\ud83d\ude00abc")) {
			assertThatExceptionOfType(InvalidMessageException.class)
				.isThrownBy(() -> this.template.sendBatch(this.queue, List.of("a", payload)))
				.withMessageContaining("payload at position 1")
				.withMessageContaining("7 bytes");
			transaction().executeWithoutResult((status) -> assertThatExceptionOfType(InvalidMessageException.class)
				.isThrownBy(() -> this.template.sendLater(this.queue, payload)));
		}
		assertThat(received()).hasSize(3);
	}

	@Test
	void unknownQueueIsTold() {
		assertThatExceptionOfType(QueueNotFoundException.class).isThrownBy(() -> this.template.send("nope", "a"))
			.withMessageContaining("Queue 'nope' does not exist")
			.withMessageContaining("PgqueQueue")
			.withMessageContaining("@PgqueListener")
			.withMessageContaining("pgque.create_queue('nope')");
		assertThat(this.commits).isEmpty();
	}

	@Test
	void badInputIsToldBeforeAnyStatement() {
		transaction().executeWithoutResult((status) -> {
			this.template.send(this.queue, "good");
			assertInvalid("payload", "index 2", () -> this.template.send(this.queue, "ab\0"));
			assertInvalid("payload", "surrogate pair at index 1", () -> this.template.send(this.queue, "a\ud83d"));
			assertInvalid("payload", "surrogate pair at index 0", () -> this.template.send(this.queue, "\ude00\ud83d"));
			assertInvalid("type", "index 0", () -> this.template.send(this.queue, "\0", "x"));
			assertInvalid("header 'a'", "index 1",
					() -> this.template.send(this.queue, (spec) -> spec.payload("x").header("a", "b\0")));
			assertInvalid("name of header", "index 0",
					() -> this.template.send(this.queue, (spec) -> spec.payload("x").header("\0", "b")));
			assertInvalid("extra1", "index 0",
					() -> this.template.send(this.queue, (spec) -> spec.payload("x").key("\0")));
			assertInvalid("payload at position 1", "index 0",
					() -> this.template.sendBatch(this.queue, List.of("x", "\0")));
			assertThatExceptionOfType(InvalidNameException.class)
				.isThrownBy(() -> this.template.send("x".repeat(58), "a"))
				.withMessageContaining("58 bytes");
			assertThatExceptionOfType(InvalidNameException.class).isThrownBy(() -> this.template.send("", "a"));
			assertThatIllegalArgumentException().isThrownBy(() -> this.template.send(this.queue, (Object) null));
		});
		assertThat(receivedPayloads()).containsExactly("good");
	}

	private static void assertInvalid(String field, String place, Runnable send) {
		assertThatExceptionOfType(InvalidMessageException.class).isThrownBy(send::run)
			.withMessageContaining("The " + field)
			.withMessageContaining(place)
			.withMessageContaining("Base64");
	}

	@Test
	void textComesBackAsItWas() {
		Random random = new Random(42);
		List<String> texts = new ArrayList<>();
		for (int i = 0; i < 200; i++) {
			int[] codePoints = random.ints(random.nextInt(200), 1, 0x110000)
				.filter((point) -> point < 0xd800 || point > 0xdfff)
				.toArray();
			texts.add(new String(codePoints, 0, codePoints.length));
		}
		texts.add("x".repeat(2_000_000));
		texts.forEach((text) -> this.template.send(this.queue, text));
		this.template.sendBatch(this.queue, texts);
		this.client.tickAll();
		List<EventRow> rows = this.client.receiveBatch(this.queue, "c", 1000, 100_000_000).rows();
		assertThat(rows).extracting(EventRow::data)
			.hasSize(402)
			.startsWith(texts.toArray(String[]::new))
			.endsWith(texts.toArray(String[]::new));
	}

	record OrderPlaced(int id) {
	}

	@PgqueEvent(version = 3)
	record OrderMoved(int id) {
	}

}
