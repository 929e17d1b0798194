package io.pgque.core;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.DeadLetterNotFoundException;
import io.pgque.MissingPrivilegeException;
import io.pgque.PgqueException;
import io.pgque.QueueNotFoundException;
import io.pgque.client.EventExtras;
import io.pgque.client.Nack;
import io.pgque.client.Page;
import io.pgque.client.PgqueClient;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.tuple;

/**
 * Tests for {@link PgqueAdmin}.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class PgqueAdminTests {

	private static int number;

	private static HikariDataSource pool;

	private final TestDatabase database;

	private final PgqueClient client;

	private final PgqueAdmin admin;

	private final String queue = "queue" + (++number);

	PgqueAdminTests(TestDatabase database) {
		this.database = database;
		this.client = new PgqueClient(pool);
		this.admin = admin();
	}

	@BeforeAll
	static void createPool(TestDatabase database) {
		pool = database.pool(12);
	}

	private PgqueAdmin admin(PgqueQueue... queues) {
		PgqueAdmin created = new PgqueAdmin(pool, List.of(queues));
		created
			.setQueueDefaults(PgqueQueue.named("any").tickerMaxLag(Duration.ofMillis(100)).tickerMaxCount(77).build());
		return created;
	}

	private String setting(String name) {
		return this.database.value(String.class,
				"select queue_" + name + "::text from pgque.queue where queue_name = ?", this.queue);
	}

	@Test
	void createsQueuesWithDefaultsAndWhatTheyState() {
		admin(PgqueQueue.named(this.queue)
			.maxRetries(2)
			.tickerMaxCount(3)
			.tickerIdlePeriod(Duration.ofSeconds(4))
			.rotationPeriod(Duration.ofMinutes(5))
			.build()).afterSingletonsInstantiated();
		assertThat(setting("max_retries")).isEqualTo("2");
		assertThat(setting("ticker_max_count")).isEqualTo("3");
		assertThat(setting("ticker_max_lag")).isEqualTo("00:00:00.1");
		assertThat(setting("ticker_idle_period")).isEqualTo("00:00:04");
		assertThat(setting("rotation_period")).isEqualTo("00:05:00");
	}

	@Test
	void changesOnlyWhatIsStatedOfAnExistingQueue() {
		this.client.createQueue(this.queue);
		this.client.setQueueConfig(this.queue, "ticker_max_count", "9");
		assertThat(this.admin.createQueue(PgqueQueue.named(this.queue).maxRetries(0).build())).isFalse();
		assertThat(setting("max_retries")).isEqualTo("0");
		assertThat(setting("ticker_max_count")).isEqualTo("9");
		assertThat(setting("ticker_max_lag")).isEqualTo("00:00:03");
	}

	@Test
	void listenersQueueIsCreatedWithDefaultsWhereThatIsAllowed() {
		this.admin.ensureQueue(this.queue);
		this.admin.ensureQueue(this.queue);
		assertThat(setting("ticker_max_lag")).isEqualTo("00:00:00.1");
		this.admin.setAutoCreate(false);
		this.admin.ensureQueue(this.queue);
		assertThatExceptionOfType(QueueNotFoundException.class)
			.isThrownBy(() -> this.admin.ensureQueue("it's not there"))
			.withMessageContaining("auto-create is off")
			.withMessageContaining("pgque.create_queue('it''s not there')");
	}

	@Test
	void readerNeedsNoMoreWhereTheQueueExists() {
		this.client.createQueue(this.queue);
		PgqueAdmin reader = new PgqueAdmin(this.database.createLogin("pgque_reader").dataSource(), List.of());
		reader.ensureQueue(this.queue);
		assertThat(reader.subscribe(this.queue, "c")).isTrue();
	}

	@Test
	void readerMayStateWhatTheQueueHasAlready() {
		PgqueQueue stated = PgqueQueue.named(this.queue)
			.maxRetries(2)
			.tickerMaxCount(3)
			.tickerMaxLag(Duration.ofMillis(1500))
			.tickerIdlePeriod(Duration.ofSeconds(4))
			.rotationPeriod(Duration.ofDays(2))
			.build();
		this.admin.createQueue(stated);
		DataSource reader = this.database.createLogin("pgque_reader").dataSource();
		new PgqueAdmin(reader, List.of(stated, PgqueQueue.named(this.queue).build())).afterSingletonsInstantiated();
		assertThatExceptionOfType(MissingPrivilegeException.class).isThrownBy(() -> new PgqueAdmin(reader, List.of())
			.createQueue(PgqueQueue.named(this.queue).maxRetries(3).build()));
		assertThat(setting("max_retries")).isEqualTo("2");
	}

	@Test
	void tellsWhatItChanges(CapturedOutput output) {
		this.client.createQueue(this.queue);
		this.client.setQueueConfig(this.queue, "ticker_max_count", "9");
		PgqueQueue stated = PgqueQueue.named(this.queue).maxRetries(4).tickerMaxCount(9).build();
		this.admin.createQueue(stated);
		this.admin.createQueue(stated);
		assertThat(output.getOut().lines().filter((line) -> line.contains(this.queue + "'"))).singleElement()
			.asString()
			.contains("Changed max_retries of queue '" + this.queue + "' from the engine's default to 4");
	}

	@Test
	void anyNumberOfInstancesMayStartAtOnce() throws Exception {
		int instances = 12;
		CyclicBarrier start = new CyclicBarrier(instances);
		ExecutorService executor = Executors.newFixedThreadPool(instances);
		try {
			List<Callable<Boolean>> starts = new ArrayList<>();
			for (int i = 0; i < instances; i++) {
				starts.add(() -> {
					start.await();
					boolean created = admin().createQueue(PgqueQueue.named(this.queue).maxRetries(3).build());
					this.admin.subscribe(this.queue, "c");
					return created;
				});
			}
			int created = 0;
			for (Future<Boolean> result : executor.invokeAll(starts)) {
				created += result.get() ? 1 : 0;
			}
			assertThat(created).isOne();
		}
		finally {
			executor.shutdownNow();
		}
		assertThat(setting("max_retries")).isEqualTo("3");
		assertThat(setting("ticker_max_lag")).isEqualTo("00:00:00.1");
	}

	@Test
	void queueDefinitionsAreChecked() {
		assertThatExceptionOfType(PgqueException.class).isThrownBy(() -> PgqueQueue.named("x".repeat(58)));
		assertThatIllegalArgumentException().isThrownBy(() -> PgqueQueue.named("q").maxRetries(-1));
		assertThatIllegalArgumentException().isThrownBy(() -> PgqueQueue.named("q").tickerMaxCount(0));
		assertThatIllegalArgumentException().isThrownBy(() -> PgqueQueue.named("q").tickerMaxLag(Duration.ZERO));
	}

	@Test
	void administersQueuesAndConsumers() {
		this.admin.ensureQueue(this.queue);
		assertThat(this.admin.subscribe(this.queue, "c")).isTrue();
		assertThat(this.admin.queues()).extracting("name").contains(this.queue);
		assertThat(this.admin.consumers()).extracting("queue", "consumer").contains(tuple(this.queue, "c"));
		assertThat(this.admin.unsubscribe(this.queue, "c")).isTrue();
		this.admin.dropQueue(this.queue, false);
		assertThat(this.admin.queues()).extracting("name").doesNotContain(this.queue);
		assertThat(this.admin.version()).isNotEmpty();
	}

	private void deadLetters(int count) {
		this.admin.ensureQueue(this.queue);
		this.admin.subscribe(this.queue, "billing");
		this.admin.subscribe(this.queue, "shipping");
		for (int i = 0; i < count; i++) {
			this.client.send(this.queue, "t", "{\"n\":" + i + "}", new EventExtras("k", null, null, "{\"h\":\"1\"}"));
		}
		this.client.tickAll();
		Page page = this.client.receiveBatch(this.queue, "billing", 10_000, 10_000_000);
		this.client.settle(page.batchId(), null,
				page.rows().stream().map((row) -> Nack.dead(row.id(), "declined")).toList());
		Page other = this.client.receiveBatch(this.queue, "shipping", 10_000, 10_000_000);
		this.client.settle(other.batchId(), null, List.of());
	}

	@Test
	void deadLettersAreListedAndReplayedToWhomTheyFailed() {
		deadLetters(1);
		PgqueDeadLetterOperations operations = this.admin.deadLetters();
		DeadLetter letter = operations.inspect(this.queue, 10).get(0);
		assertThat(operations.inspectAll(10)).contains(letter);
		assertThat(letter.consumer()).isEqualTo("billing");
		assertThat(letter.reason()).isEqualTo("declined");
		assertThat(letter.payload()).isEqualTo("{\"n\":0}");
		assertThat(letter.type()).isEqualTo("t");
		assertThat(letter.extra1()).isEqualTo("k");
		assertThat(letter.headers()).containsEntry("h", "1");
		assertThat(operations.replay(letter.id())).isEqualTo(letter.messageId());
		assertThat(operations.inspect(this.queue, 10)).isEmpty();
		assertThat(received("billing").rows()).singleElement()
			.extracting("id", "retryCount")
			.containsExactly(letter.messageId(), null);
		assertThat(received("shipping").isEmpty()).isTrue();
		assertThatExceptionOfType(DeadLetterNotFoundException.class).isThrownBy(() -> operations.replay(letter.id()))
			.withMessageContaining("There is no dead letter " + letter.id())
			.satisfies((failure) -> assertThat(failure.getId()).isEqualTo(letter.id()));
		assertThatExceptionOfType(DeadLetterNotFoundException.class)
			.isThrownBy(() -> operations.replayToAll(letter.id()));
	}

	@Test
	void deadLetterIsReplayedToEverybody() {
		deadLetters(1);
		DeadLetter letter = this.admin.deadLetters().inspect(this.queue, 10).get(0);
		long id = this.admin.deadLetters().replayToAll(letter.id());
		assertThat(id).isNotEqualTo(letter.messageId());
		assertThat(received("billing").rows()).singleElement().extracting("id").isEqualTo(id);
		assertThat(received("shipping").rows()).singleElement().extracting("id").isEqualTo(id);
	}

	@Test
	void deadLettersAreCounted() {
		deadLetters(3);
		PgqueAdmin reader = new PgqueAdmin(this.database.createLogin("pgque_reader").dataSource(), List.of());
		long before = reader.deadLetters().countAll() - 3;
		assertThat(reader.deadLetters().count(this.queue)).isEqualTo(3);
		this.admin.deadLetters().purge(this.queue, Duration.ZERO);
		assertThat(reader.deadLetters().count(this.queue)).isZero();
		assertThat(reader.deadLetters().countAll()).isEqualTo(before);
		assertThat(reader.deadLetters().count("not there")).isZero();
	}

	@Test
	void allDeadLettersAreReplayed() {
		deadLetters(603);
		assertThat(this.admin.deadLetters().replayAll(this.queue)).isEqualTo(new ReplayAllResult(603, 0, null));
		assertThat(this.admin.deadLetters().inspect(this.queue, 10)).isEmpty();
		assertThat(received("billing").rows()).hasSize(603);
	}

	@Test
	void oneThatCannotBeReplayedKeepsNoOtherBack() {
		deadLetters(3);
		long poisoned = this.admin.deadLetters().inspect(this.queue, 10).get(1).id();
		this.database.execute("""
				create function public.refuse() returns trigger language plpgsql as $$
				begin
					raise exception 'refused';
				end
				$$;
				create trigger refuse before delete on pgque.dead_letter for each row
				when (old.dl_id = %d) execute function public.refuse();
				""".formatted(poisoned));
		try {
			ReplayAllResult result = this.admin.deadLetters().replayAll(this.queue);
			assertThat(result.replayed()).isEqualTo(2);
			assertThat(result.failed()).isOne();
			assertThat(result.firstError()).contains("refused");
		}
		finally {
			this.database.execute("drop function public.refuse() cascade");
		}
		assertThat(this.admin.deadLetters().inspect(this.queue, 10)).extracting(DeadLetter::id)
			.containsExactly(poisoned);
		assertThat(this.admin.deadLetters().purge(this.queue, Duration.ofDays(1))).isZero();
		assertThat(this.admin.deadLetters().purge(this.queue, Duration.ZERO)).isOne();
	}

	private Page received(String consumer) {
		this.client.moveDueRetries();
		this.client.tickAll();
		return this.client.receiveBatch(this.queue, consumer, 10_000, 10_000_000);
	}

}
