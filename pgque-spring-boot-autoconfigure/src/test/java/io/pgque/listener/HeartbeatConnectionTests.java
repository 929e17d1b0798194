package io.pgque.listener;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import javax.sql.DataSource;

import io.pgque.client.PgqueClient;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.jdbc.CannotGetJdbcConnectionException;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import static io.pgque.listener.ContainerDeliveryTests.count;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link HeartbeatConnection}.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class HeartbeatConnectionTests {

	private final TestDatabase database;

	private final AtomicBoolean poolFails = new AtomicBoolean();

	private final AtomicBoolean ownFails = new AtomicBoolean();

	private final AtomicInteger ownOpened = new AtomicInteger();

	private final AtomicInteger ownTried = new AtomicInteger();

	private final HeartbeatConnection connection;

	HeartbeatConnectionTests(TestDatabase database) {
		this.database = database;
		DataSource pool = new Switched(database.dataSource(), this.poolFails, new AtomicInteger(), new AtomicInteger());
		DataSource own = new Switched(database.dataSource(), this.ownFails, this.ownTried, this.ownOpened);
		this.connection = new HeartbeatConnection("test", new PgqueClient(pool), own);
	}

	@AfterEach
	void close() {
		this.connection.close();
	}

	private void beat() {
		this.connection.send((client) -> client.beat("test"));
	}

	@Test
	void keepsItsOwnConnection() {
		beat();
		beat();
		assertThat(this.ownOpened).hasValue(1);
	}

	@Test
	void deadEndCostsItsTimeOnce(CapturedOutput output) {
		this.ownFails.set(true);
		for (int i = 0; i < 5; i++) {
			beat();
		}
		assertThat(this.ownTried).hasValue(1);
		assertThat(count(output, "takes connections of the application's pool until its own works again")).isOne();
	}

	@Test
	void ownConnectionIsTriedAgainAtOnceWhenThePoolFailsToo() {
		this.ownFails.set(true);
		beat();
		this.poolFails.set(true);
		assertThatExceptionOfType(CannotGetJdbcConnectionException.class).isThrownBy(this::beat);
		assertThat(this.ownTried).hasValue(1);
		this.ownFails.set(false);
		beat();
		assertThat(this.ownOpened).hasValue(1);
	}

	@Test
	void connectionThatWasCutOffIsReplacedAtOnce() {
		beat();
		this.database.query("select pg_terminate_backend(pid) from pg_stat_activity"
				+ " where datname = current_database() and pid <> pg_backend_pid() and query like '%instance_beat%'");
		this.poolFails.set(true);
		beat();
		assertThat(this.ownOpened).hasValue(2);
	}

	/**
	 * Opens connections, or doesn't.
	 */
	private static final class Switched extends DelegatingDataSource {

		private final AtomicBoolean fails;

		private final AtomicInteger tried;

		private final AtomicInteger opened;

		Switched(DataSource target, AtomicBoolean fails, AtomicInteger tried, AtomicInteger opened) {
			super(target);
			this.fails = fails;
			this.tried = tried;
			this.opened = opened;
		}

		@Override
		public Connection getConnection() throws SQLException {
			this.tried.incrementAndGet();
			if (this.fails.get()) {
				throw new SQLException("no way");
			}
			this.opened.incrementAndGet();
			return super.getConnection();
		}

	}

}
