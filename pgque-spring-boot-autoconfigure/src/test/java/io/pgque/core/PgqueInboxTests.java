package io.pgque.core;

import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Map;

import javax.sql.DataSource;

import io.pgque.TransactionRequiredException;
import io.pgque.client.InboxClient;
import io.pgque.client.PgqueClient;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link PgqueInbox}.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class PgqueInboxTests {

	private static final PgqueMessage MESSAGE = new PgqueMessage(11, 1, "orders", "billing", "t", "p", null,
			OffsetDateTime.now(), null, null, null, null, Map.of());

	private final TestDatabase database;

	private final DataSource pool;

	private final TransactionTemplate transaction;

	private final PgqueInbox inbox;

	PgqueInboxTests(TestDatabase database) {
		this.database = database;
		this.pool = database.pool(2);
		this.transaction = new TransactionTemplate(new DataSourceTransactionManager(this.pool));
		this.inbox = new PgqueInbox(new InboxClient(this.pool), Duration.ofHours(36));
		PgqueClient client = new PgqueClient(this.pool);
		client.createQueue("orders");
		client.subscribe("orders", "billing");
	}

	@Test
	void noteBelongsToTheTransaction() {
		assertThat(this.transaction.<Boolean>execute((status) -> {
			status.setRollbackOnly();
			return this.inbox.isNew(MESSAGE);
		})).isTrue();
		assertThat(this.transaction.<Boolean>execute((status) -> this.inbox.isNew(MESSAGE))).isTrue();
		assertThat(this.transaction.<Boolean>execute((status) -> this.inbox.isNew(MESSAGE))).isFalse();
	}

	@Test
	void withoutATransactionItIsRefused() {
		assertThatExceptionOfType(TransactionRequiredException.class).isThrownBy(() -> this.inbox.isNew(MESSAGE))
			.withMessageContaining("Message 11 of queue 'orders'")
			.withMessageContaining("@Transactional");
	}

	@Test
	void retentionIsToldToTheEngine(CapturedOutput output) {
		this.inbox.afterSingletonsInstantiated();
		assertThat(this.database.value(String.class, "select inbox_retention::text from pgque_internal.inbox_ring"))
			.isEqualTo("36:00:00");
		new PgqueInbox(new InboxClient(this.database.createLogin("pgque_reader").dataSource()), Duration.ofHours(1))
			.afterSingletonsInstantiated();
		assertThat(output).contains("The inbox keeps the retention that it has");
		assertThat(this.database.value(String.class, "select inbox_retention::text from pgque_internal.inbox_ring"))
			.isEqualTo("36:00:00");
	}

}
