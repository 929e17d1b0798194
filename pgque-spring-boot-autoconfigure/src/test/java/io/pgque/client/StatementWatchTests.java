package io.pgque.client;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;

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
	void leavesWhatFollowsAlone() throws SQLException {
		this.watch.limit(this.statement, Duration.ofMillis(100)).close();
		assertThat(this.statement.execute("select pg_sleep(1)")).isTrue();
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
	void aLimitIsSeenWheneverItIsSet() throws SQLException {
		StatementWatch restless = new StatementWatch(Duration.ZERO);
		for (int time = 0; time < 10; time++) {
			// The thread is about to end each time.
			await().until(() -> !restless.isWatching());
			try (StatementWatch.Limit limit = restless.limit(this.statement, Duration.ofMillis(10))) {
				assertThatExceptionOfType(SQLException.class)
					.isThrownBy(() -> this.statement.execute("select pg_sleep(30)"))
					.satisfies((ex) -> assertThat(ex.getSQLState()).isEqualTo(CANCELED));
			}
		}
	}

}
