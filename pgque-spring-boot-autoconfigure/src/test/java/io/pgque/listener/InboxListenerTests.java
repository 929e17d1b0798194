package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.client.InboxClient;
import io.pgque.core.PgqueInbox;
import io.pgque.core.PgqueMessage;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static io.pgque.listener.ListenerFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

/**
 * A handler that commits its work and is not settled: the message comes again, its effect
 * doesn't.
 */
@PgqueDatabase
class InboxListenerTests {

	private final TestDatabase database;

	InboxListenerTests(TestDatabase database) {
		this.database = database;
	}

	@Test
	void effectIsThereOnceAlthoughTheMessageComesTwice() throws Exception {
		this.database.execute("create table charge (message bigint, payload text)");
		try (ListenerFixture fixture = new ListenerFixture(this.database)) {
			JdbcTemplate jdbc = new JdbcTemplate(fixture.pool);
			TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(fixture.pool));
			PgqueInbox inbox = new PgqueInbox(new InboxClient(fixture.pool), Duration.ofDays(1));
			List<String> calls = new CopyOnWriteArrayList<>();
			var container = fixture.container("charges", (PgqueMessage message) -> {
				transaction.executeWithoutResult((status) -> {
					if (inbox.isNew(message)) {
						jdbc.update("insert into charge values (?, ?)", message.id(), message.payload());
					}
				});
				calls.add(message.payload());
				if (calls.size() == 2) {
					// As if the process ended here: neither a failure nor a success.
					throw new OutOfMemoryError("made up");
				}
			});
			fixture.send("charges", 3);
			container.start();
			await().until(() -> fixture.isDrained("charges"));
			assertThat(calls).containsExactly("1", "2", "2", "3");
			assertThat(this.database.values(String.class, "select payload from charge order by message"))
				.containsExactly("1", "2", "3");
		}
	}

}
