package io.pgque.client;

import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for which commits wait for the disk: what moves a consumer forward does, what
 * merely opens a batch doesn't.
 */
@PgqueDatabase
class DurabilityTests {

	private static final String QUEUE = "durable";

	private static final String CONSUMER = "consumer";

	private static final String INSTANCE = "instance";

	/**
	 * Notes how the commit of each transaction that moves a consumer is done, at that
	 * commit.
	 */
	private static final String OBSERVATION = """
			create table commits (setting text);
			create function note_commit() returns trigger language plpgsql as $$
			begin
			    insert into public.commits values (current_setting('synchronous_commit'));
			    return null;
			end
			$$;
			create constraint trigger note_commit after insert on pgque_internal.cursor
			deferrable initially deferred for each row execute function note_commit();
			""";

	private final TestDatabase database;

	private final PGSimpleDataSource dataSource = new PGSimpleDataSource();

	private final PgqueClient client;

	private long epoch;

	DurabilityTests(TestDatabase database) {
		this.database = database;
		this.dataSource.setUrl(database.url());
		this.dataSource.setUser(database.user());
		this.dataSource.setPassword(database.password());
		this.dataSource.setOptions("-c synchronous_commit=on");
		this.client = new PgqueClient(this.dataSource);
	}

	@BeforeEach
	void observe() {
		this.client.createQueue(QUEUE);
		this.client.subscribe(QUEUE, CONSUMER);
		SharingClient sharing = this.client.sharing();
		sharing.beat(INSTANCE);
		Long epoch = sharing.acquireLease(QUEUE, CONSUMER, INSTANCE, Duration.ofMinutes(1)).epoch();
		assertThat(epoch).isNotNull();
		this.epoch = epoch;
		this.database.execute(OBSERVATION);
	}

	@AfterEach
	void remove() {
		this.database.execute("drop trigger note_commit on pgque_internal.cursor; drop function note_commit();"
				+ " drop table commits");
		this.client.dropQueue(QUEUE, true);
	}

	@Test
	void openingABatchDoesNotWaitForTheDiskAndSettlingDoes() {
		send();
		Page page = receive();
		assertThat(commits()).containsExactly("off");
		this.client.settle(page.batchId(), null, List.of());
		assertThat(commits()).containsExactly("on");

		send();
		page = this.client.sharing().tickAndReceiveLeased(QUEUE, CONSUMER, INSTANCE, this.epoch, 10, 1000).page();
		assertThat(commits()).containsExactly("off");
		send();
		this.client.tick(List.of(QUEUE));
		page = this.client.sharing().settleAndReceiveLeased(page.batchId(), INSTANCE, this.epoch, 10, 1000);
		assertThat(page.isEmpty()).isFalse();
		assertThat(commits()).as("it settles one, and opens another").containsExactly("on");
	}

	@Test
	void transactionOfTheCallerIsCommittedAsTheCallerWants() {
		send();
		TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(this.dataSource));
		transaction.executeWithoutResult((status) -> assertThat(receive().isEmpty()).isFalse());
		assertThat(commits()).containsExactly("on");
	}

	/**
	 * What a crash undoes of a sequence, it undoes of the batches too, but not of what an
	 * instance holds. No server is back within 20 ms.
	 */
	@Test
	void batchIdIsNotGivenOutAgainAfterACrash() {
		send();
		String position = this.database.value(String.class,
				"select last_value || ',' || is_called from pgque.batch_id_seq");
		long lost = inUndone(() -> receive().batchId());
		String[] parts = position.split(",");
		this.database.query("select setval('pgque.batch_id_seq', ?, ?)", Long.parseLong(parts[0]),
				Boolean.parseBoolean(parts[1]));
		this.database.query("select pg_sleep(0.02)");
		long batch = receive().batchId();
		assertThat(batch >> 20).as("the sequence did give its value out again").isEqualTo(lost >> 20);
		assertThat(batch).isNotEqualTo(lost);
		assertThat(this.client.settle(lost, null, List.of()).settled()).isFalse();
		assertThat(this.client.settle(batch, null, List.of()).settled()).isTrue();
	}

	private <T> T inUndone(Supplier<T> work) {
		TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(this.dataSource));
		return transaction.execute((status) -> {
			status.setRollbackOnly();
			return work.get();
		});
	}

	private void send() {
		this.client.send(QUEUE, "type", "data", EventExtras.NONE);
		this.client.tick(List.of(QUEUE));
	}

	private Page receive() {
		return this.client.sharing().receiveLeased(QUEUE, CONSUMER, INSTANCE, this.epoch, 10, 1000);
	}

	private List<String> commits() {
		List<String> commits = this.database.values(String.class, "select setting from commits");
		this.database.execute("truncate commits");
		return commits;
	}

}
