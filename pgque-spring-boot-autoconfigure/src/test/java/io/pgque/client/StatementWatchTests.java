package io.pgque.client;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

/**
 * Tests for cancelling statements that run for too long, and no others.
 */
@PgqueDatabase
class StatementWatchTests {

	private static final String CANCELED = "57014";

	private final TestDatabase database;

	private final StatementWatch watch = new StatementWatch(Duration.ofMillis(500));

	private Connection connection;

	private Statement statement;

	StatementWatchTests(TestDatabase database) {
		this.database = database;
	}

	@BeforeEach
	void connect() throws SQLException {
		this.connection = DriverManager.getConnection(this.database.url(), this.database.user(),
				this.database.password());
		this.statement = this.connection.createStatement();
	}

	@AfterEach
	void disconnect() throws SQLException {
		this.connection.close();
	}

	@Test
	void cancelsWhatRunsForTooLong() throws SQLException {
		try (StatementWatch.Limit limit = this.watch.limit(this.statement, Duration.ofMillis(100))) {
			assertThatExceptionOfType(SQLException.class)
				.isThrownBy(() -> this.statement.execute("select pg_sleep(30)"))
				.satisfies((ex) -> assertThat(ex.getSQLState()).isEqualTo(CANCELED));
		}
		assertThat(this.statement.execute("select 1")).isTrue();
	}

	@Test
	void leavesWhatFollowsAlone() throws Exception {
		StatementWatch.Limit limit = this.watch.limit(this.statement, Duration.ofMillis(100));
		limit.close();
		// As a thread does that was started just before.
		Thread late = new Thread(() -> {
			LockSupport.parkNanos(300_000_000);
			limit.cancel();
		});
		late.start();
		assertThat(this.statement.execute("select pg_sleep(1)")).isTrue();
		late.join();
	}

	@Test
	void leavesAloneWhatIsWithinItsLimit() throws SQLException {
		try (Connection other = DriverManager.getConnection(this.database.url(), this.database.user(),
				this.database.password());
				Statement longer = other.createStatement();
				StatementWatch.Limit limit = this.watch.limit(longer, Duration.ofMinutes(1));
				StatementWatch.Limit over = this.watch.limit(this.statement, Duration.ofMillis(100))) {
			assertThat(longer.execute("select pg_sleep(1)")).isTrue();
		}
	}

	@Test
	void watchesNoLongerThanThereIsWork() throws SQLException {
		for (int time = 0; time < 2; time++) {
			try (StatementWatch.Limit limit = this.watch.limit(this.statement, Duration.ofMinutes(1))) {
				assertThat(this.watch.isWatching()).isTrue();
			}
			await().until(() -> !this.watch.isWatching());
		}
		cancelsWhatRunsForTooLong();
	}

	@Test
	void aLimitIsSeenWheneverItIsSet() throws Exception {
		StatementWatch restless = new StatementWatch(Duration.ZERO);
		AtomicBoolean over = new AtomicBoolean();
		// Its thread is ended and started all the time meanwhile.
		Thread other = new Thread(() -> {
			while (!over.get()) {
				restless.limit(this.statement, Duration.ofMinutes(1)).close();
			}
		});
		other.start();
		try {
			for (int time = 0; time < 10; time++) {
				try (StatementWatch.Limit limit = restless.limit(this.statement, Duration.ofMillis(10))) {
					assertThatExceptionOfType(SQLException.class)
						.isThrownBy(() -> this.statement.execute("select pg_sleep(30)"))
						.satisfies((ex) -> assertThat(ex.getSQLState()).isEqualTo(CANCELED));
				}
			}
		}
		finally {
			over.set(true);
			other.join();
		}
	}

}
