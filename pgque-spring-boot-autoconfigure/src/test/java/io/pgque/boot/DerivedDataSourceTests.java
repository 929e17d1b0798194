package io.pgque.boot;

import java.io.IOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.boot.PgqueProperties.Schema;
import io.pgque.schema.SchemaMode;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TcpProxy;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.datasource.DelegatingDataSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link DirectDataSource} and {@link MigrationDataSource}.
 */
@PgqueDatabase
class DerivedDataSourceTests {

	private final TestDatabase database;

	private final HikariDataSource pool;

	DerivedDataSourceTests(TestDatabase database) {
		this.database = database;
		HikariConfig config = new HikariConfig();
		config.setJdbcUrl(database.url());
		config.setUsername(database.user());
		config.setPassword(database.password());
		config.addDataSourceProperty("options", "-c work_mem=1234kB");
		config.setMinimumIdle(0);
		this.pool = new HikariDataSource(config);
	}

	@AfterEach
	void close() {
		this.pool.close();
	}

	private static String workMem(DataSource dataSource) throws SQLException {
		assertThat(dataSource).isNotNull();
		try (Connection connection = dataSource.getConnection();
				Statement statement = connection.createStatement();
				ResultSet rows = statement.executeQuery("show work_mem")) {
			rows.next();
			return rows.getString(1);
		}
	}

	private Schema schema(String url, String username, String password) {
		return new Schema(SchemaMode.MIGRATE, url, username, password);
	}

	@Test
	void connectionForNotificationsHasThePropertiesOfThePool() throws SQLException {
		DataSource wrapped = new DelegatingDataSource(this.pool);
		assertThat(workMem(DirectDataSource.forWakeups(wrapped, new PgqueProperties.Connection(null, null, null))))
			.isEqualTo("1234kB");
	}

	/**
	 * A pool has the driver give up a login after its own timeout, for the whole JVM:
	 * half a minute.
	 */
	@Test
	void connectionsBesideThePoolDoNotHangWhereNobodyAnswers() throws IOException {
		PgqueProperties.Connection properties = new PgqueProperties.Connection(null, null, null);
		try (TcpProxy hole = TcpProxy.to(this.database.server().port())) {
			hole.swallow();
			try (HikariDataSource pool = new HikariDataSource()) {
				pool.setJdbcUrl("jdbc:postgresql://localhost:" + hole.port() + "/" + this.database.name());
				pool.setUsername(this.database.user());
				for (DataSource dataSource : List.of(DirectDataSource.forWakeups(pool, properties),
						DirectDataSource.forHeartbeat(pool, properties))) {
					long begin = System.nanoTime();
					assertThatExceptionOfType(SQLException.class).isThrownBy(dataSource::getConnection);
					assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(10));
				}
			}
		}
	}

	@Test
	void connectionsForTheSchemaHaveThePropertiesOfThePool() throws SQLException {
		String user = this.database.user();
		String password = this.database.password();
		assertThat(workMem(MigrationDataSource.create(this.pool, schema(null, null, null)))).isEqualTo("1234kB");
		assertThat(workMem(MigrationDataSource.create(this.pool, schema(null, user, password)))).isEqualTo("1234kB");
		assertThat(workMem(MigrationDataSource.create(this.pool, schema(this.database.url(), user, password))))
			.isEqualTo("1234kB");
	}

	@Test
	void parametersOfAnAddressWin() throws SQLException {
		String address = this.database.url() + (this.database.url().contains("?") ? "&" : "?")
				+ "options=-c%20work_mem=777kB";
		assertThat(workMem(
				MigrationDataSource.create(this.pool, schema(address, this.database.user(), this.database.password()))))
			.isEqualTo("777kB");
	}

}
