package io.pgque.engine;

import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.PGConnection;

import io.pgque.engine.ClientSession.Protocol;
import io.pgque.engine.ClientSession.Result;
import io.pgque.engine.SqlCalls.SqlError;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/**
 * What the public clients do with their calls: consumer loops, the errors they tell apart
 * by words, and the tables their tests and benchmarks use.
 */
@PgqueDatabase
class ClientLoopTests {

	/**
	 * Words by which a client recognises an error; the first kind that matches counts.
	 */
	private static final Map<String, Map<Kind, List<String>>> WORDS = Map.of( //
			"Python",
			Map.of(Kind.QUEUE, List.of("queue not found"), Kind.CONSUMER,
					List.of("consumer not registered", "consumer not found", "not subscriber to queue"), Kind.BATCH,
					List.of("batch not found", "cannot find data for batch")),
			"Ruby",
			Map.of(Kind.QUEUE, List.of("queue not found"), Kind.CONSUMER, List.of(), Kind.BATCH,
					List.of("batch not found")),
			"Go",
			Map.of(Kind.QUEUE,
					List.of("queue not found", "no such queue", "no such event queue", "event queue not found",
							"event queue not created"),
					Kind.CONSUMER, List.of("consumer not registered", "consumer not found", "not subscriber to queue"),
					Kind.BATCH, List.of("batch not found", "cannot find data for batch")),
			"TypeScript",
			Map.of(Kind.QUEUE,
					List.of("queue not found", "no such queue", "no such event queue", "event queue not found",
							"event queue not created"),
					Kind.CONSUMER,
					List.of("consumer not registered", "consumer not found", "not subscribed", "not subscriber"),
					Kind.BATCH, List.of("batch not found", "cannot find data for batch")));

	private static final String NACK = "select pgque.nack(?, row(?, null, null, null, null, null, null, null, null, null)"
			+ "::pgque.message, ?::interval, ?)";

	enum Kind {

		QUEUE, CONSUMER, BATCH, OTHER

	}

	TestDatabase database;

	private SqlCalls calls;

	private ClientSession session;

	private String queue;

	@BeforeEach
	void subscribe() throws SQLException {
		this.calls = new SqlCalls(this.database);
		this.session = new ClientSession(this.database, Protocol.BINARY);
		this.queue = this.calls.queue();
		this.session.query("select pgque.subscribe(?, ?)", this.queue, "c");
	}

	@AfterEach
	void close() throws SQLException {
		this.session.close();
	}

	@Test
	void oneTransactionReceivesHandlesAndAcks() throws SQLException {
		this.calls.sendTicks(this.queue, "1", "2");
		this.session.connection().setAutoCommit(false);
		List<Object> handled = new ArrayList<>();
		List<List<@Nullable Object>> messages = receive();
		while (!messages.isEmpty()) {
			messages.forEach((message) -> handled.add(message.get(3)));
			assertThat(this.session.query("select pgque.ack(?)", messages.get(0).get(1)).number()).isEqualTo(1);
			this.session.connection().commit();
			messages = receive();
		}
		this.session.connection().commit();
		assertThat(handled).containsExactly("1", "2");
	}

	@Test
	void aTransactionThatRollsBackGetsTheBatchAgain() throws SQLException {
		this.calls.sendTicks(this.queue, "1");
		this.session.connection().setAutoCommit(false);
		assertThat(receive()).hasSize(1);
		this.session.connection().rollback();
		assertThat(receive()).hasSize(1);
		this.session.connection().rollback();
	}

	@Test
	void eachStatementMayBeATransactionOfItsOwn() throws SQLException {
		this.calls.sendTicks(this.queue, "1");
		List<List<@Nullable Object>> messages = receive();
		assertThat(receive()).as("until it is acked").isEqualTo(messages);
		this.session.query(NACK, messages.get(0).get(1), messages.get(0).get(0), "60", "why");
		assertThat(this.session.query("select pgque.ack(?)", messages.get(0).get(1)).number()).isEqualTo(1);
		assertThat(receive()).isEmpty();
		this.calls.redeliver(this.queue);
		assertThat(receive()).extracting((message) -> message.get(4)).containsExactly(1);
	}

	@Test
	void aBatchWhoseNackFailsComesAgain() throws SQLException {
		this.calls.sendTicks(this.queue, "1");
		List<List<@Nullable Object>> messages = receive();
		assertThat(this.session.error(NACK, messages.get(0).get(1), "77", "60", null).message())
			.matches("msg_id 77 not found in batch \\d+");
		assertThat(receive()).isEqualTo(messages);
	}

	@Test
	void aRunOfEmptyTicksCostsAReceiveEach() throws SQLException {
		this.calls.tickEmpty(this.queue);
		this.calls.tickEmpty(this.queue);
		this.calls.sendTicks(this.queue, "1");
		assertThat(receive()).isEmpty();
		assertThat(receive()).isEmpty();
		assertThat(receive()).hasSize(1);
	}

	@Test
	void membersOfAGroupLoopAlike() throws SQLException {
		this.session.query("select pgque.subscribe_subconsumer(?, ?, ?)", this.queue, "g", "a");
		this.calls.sendTicks(this.queue, "1", "2");
		this.session.connection().setAutoCommit(false);
		String receive = "select * from pgque.receive_coop(?, ?, ?, ?, ?::interval)";
		for (String payload : new String[] { "1", "2" }) {
			Result result = this.session.query(receive, this.queue, "g", "a", Integer.MAX_VALUE, null);
			assertThat(result.at(0, "payload")).isEqualTo(payload);
			assertThat(this.session.query("select pgque.ack(?)", result.at(0, "batch_id")).number()).isEqualTo(1);
			this.session.connection().commit();
		}
		assertThat(this.session.query(receive, this.queue, "g", "a", Integer.MAX_VALUE, null).rows()).isEmpty();
		this.session.connection().commit();
	}

	@Test
	void aTickWakesWhoListens() throws SQLException {
		try (Statement statement = this.session.connection().createStatement()) {
			statement.execute("listen \"pgque_" + this.queue + "\"");
		}
		this.calls.send(this.queue, "1");
		Long tick = this.calls.value(Long.class, "select pgque.ticker(?)", this.queue);
		assertThat(this.session.connection().unwrap(PGConnection.class).getNotifications(5000))
			.extracting((notification) -> tuple(notification.getName(), notification.getParameter()))
			.containsExactly(tuple("pgque_" + this.queue, String.valueOf(tick)));
		assertThat(receive()).hasSize(1);
	}

	@ParameterizedTest
	@MethodSource
	void clientsTellErrorsApart(String call, Kind python, Kind ruby, Kind go, Kind typeScript) {
		SqlError error = this.session.error("select * from pgque." + call.replace("<queue>", this.queue));
		assertThat(error.state()).isEqualTo("P0001");
		assertThat(List.of(kind("Python", error), kind("Ruby", error), kind("Go", error), kind("TypeScript", error)))
			.as(error.message())
			.containsExactly(python, ruby, go, typeScript);
	}

	static Stream<Arguments> clientsTellErrorsApart() {
		Kind queue = Kind.QUEUE;
		Kind consumer = Kind.CONSUMER;
		Kind batch = Kind.BATCH;
		Kind other = Kind.OTHER;
		String message = "row(1, null, null, null, null, null, null, null, null, null)::pgque.message";
		return Stream.of(Arguments.of("send('nowhere', '{}'::jsonb)", queue, queue, queue, queue),
				Arguments.of("send('nowhere', 'type', '{}'::jsonb)", queue, queue, queue, queue),
				Arguments.of("send_batch('nowhere', 'type', '{1}'::jsonb[])", queue, queue, queue, queue),
				Arguments.of("force_next_tick('nowhere')", queue, queue, queue, queue),
				Arguments.of("ticker('nowhere')", other, other, queue, queue),
				Arguments.of("drop_queue('nowhere')", other, other, queue, queue),
				Arguments.of("current_event_table('nowhere')", queue, queue, queue, queue),
				Arguments.of("subscribe('nowhere', 'c')", other, other, queue, queue),
				Arguments.of("receive('<queue>', 'nobody', 1)", consumer, other, consumer, consumer),
				Arguments.of("receive('nowhere', 'nobody', 1)", consumer, other, consumer, consumer),
				Arguments.of("receive_coop('<queue>', 'c', 'a')", other, other, other, other),
				Arguments.of("nack(999999999, " + message + ", '1 s', null)", batch, batch, batch, batch),
				Arguments.of("get_batch_events(999999999)", batch, batch, batch, batch),
				Arguments.of("batch_event_tables(999999999)", batch, other, batch, batch));
	}

	private static Kind kind(String client, SqlError error) {
		String message = error.message().toLowerCase(Locale.ROOT);
		for (Kind kind : new Kind[] { Kind.QUEUE, Kind.CONSUMER, Kind.BATCH }) {
			if (WORDS.get(client).get(kind).stream().anyMatch(message::contains)) {
				return kind;
			}
		}
		return Kind.OTHER;
	}

	@Test
	void clientTestsReadAndChangeTheCatalog() throws SQLException {
		int queueId = this.calls.integer("select queue_id from pgque.queue where queue_name = ?", this.queue);
		assertThat(this.calls.update("update pgque.queue set queue_max_retries = 1 where queue_name = ?", this.queue))
			.isEqualTo(1);
		this.calls.sendTicks(this.queue, "1");
		List<@Nullable Object> message = receive().get(0);
		assertThat(this.calls.row("select sub_role, sub_batch, sub_last_tick from pgque.subscription s"
				+ " join pgque.consumer c on c.co_id = s.sub_consumer where s.sub_queue = ? and c.co_name = 'c'",
				queueId))
			.isEqualTo(tuple("normal", message.get(1), 1L));
		nackAndAck(message);
		assertThat(this.calls.row("select ev_queue, ev_id, ev_type, ev_retry_after > now() from pgque.retry_queue"))
			.isEqualTo(tuple(queueId, message.get(0), "test", true));
		this.calls.update("update pgque.retry_queue set ev_retry_after = now() - interval '1 hour' where ev_queue = ?",
				queueId);
		assertThat(this.session.query("select pgque.maint_retry_events()").number()).isEqualTo(1);
		this.session.query("select pgque.force_next_tick(?)", this.queue);
		this.session.query("select pgque.ticker(?)", this.queue);
		nackAndAck(receive().get(0));
		assertThat(this.calls.row("select ev_id, dl_reason, dl_id > 0 from pgque.dead_letter where dl_queue_id = ?",
				queueId))
			.isEqualTo(tuple(message.get(0), "why", true));
		this.calls.sendTicks(this.queue, "2");
		nackAndAck(receive().get(0));
		assertThat(this.calls.update("delete from pgque.retry_queue where ev_queue = ? and ev_type = 'test'", queueId))
			.isEqualTo(1);
	}

	private void nackAndAck(List<@Nullable Object> message) throws SQLException {
		this.session.query(NACK, message.get(1), message.get(0), "60", "why");
		this.session.query("select pgque.ack(?)", message.get(1));
	}

	@Test
	void clientTestsCleanUpByHand() throws SQLException {
		this.session.query("select pgque.subscribe_subconsumer(?, ?, ?)", this.queue, "g", "a");
		this.calls.sendTicks(this.queue, "1");
		this.session.query("select * from pgque.receive_coop(?, ?, ?, ?, ?::interval)", this.queue, "g", "a", 10, null);
		assertThat(this.calls.update("delete from pgque.subscription where sub_queue ="
				+ " (select queue_id from pgque.queue where queue_name = ?)", this.queue))
			.isEqualTo(3);
		assertThat(this.session.query("select pgque.drop_queue(?, true)", this.queue).number()).isEqualTo(1);
		this.queue = this.calls.queue();
		this.session.query("select pgque.subscribe_subconsumer(?, ?, ?)", this.queue, "g", "a");
		assertThat(this.session.query("select pgque.drop_queue(?, true)", this.queue).number())
			.as("with a group, as later clients do")
			.isEqualTo(1);
	}

	private List<List<@Nullable Object>> receive() throws SQLException {
		return this.session.query("select * from pgque.receive(?, ?, ?)", this.queue, "c", Integer.MAX_VALUE).rows();
	}

}
