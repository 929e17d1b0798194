package io.pgque.schema;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import javax.sql.DataSource;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;

import org.springframework.jdbc.datasource.DelegatingDataSource;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link TransactionPoolerDataSource}.
 */
@PgqueDatabase(migrated = false)
class TransactionPoolerDataSourceTests {

	/**
	 * Nothing that a migration sends may outlive its transaction: behind a transaction
	 * pooler, the session goes to somebody else then.
	 */
	@Test
	void migrationLeavesNoTraceInASession(TestDatabase database) {
		Recorder recorder = new Recorder(database.dataSource());
		new PgqueSchemaMigrator(recorder, recorder).migrate();
		assertThat(recorder.statements).anyMatch((sql) -> sql.contains("pg_advisory_xact_lock"))
			.anyMatch((sql) -> sql.contains("create table pgque.queue"))
			.anyMatch((sql) -> sql.equals("SELECT set_config('search_path', ?, true)"))
			.noneMatch((sql) -> sql.matches("(?is)\\s*(set\\s+(?!local\\b)|reset|listen|prepare|declare|discard)\\b.*"))
			.filteredOn((sql) -> !sql.contains("create or replace function"))
			.noneMatch((sql) -> sql.matches("(?is).*set_config\\([^)]*false\\s*\\).*"))
			.noneMatch((sql) -> sql.matches("(?is)\\s*select\\s+[^;]*pg_(try_)?advisory_lock.*"))
			.noneMatch((sql) -> sql.matches("(?is)\\s*create\\s+temp.*"));
	}

	@Test
	void changesOnlyWhatFlywaySaysToTheSession() {
		assertThat(TransactionPoolerDataSource.rewrite("SELECT set_config('search_path', ?, false)"))
			.isEqualTo("SELECT set_config('search_path', ?, true)");
		assertThat(TransactionPoolerDataSource.rewrite("SET ROLE 'me'")).isEqualTo("select 1");
		assertThat(TransactionPoolerDataSource.rewrite("SELECT 'set role'")).isEqualTo("SELECT 'set role'");
	}

	private static final class Recorder extends DelegatingDataSource {

		private final List<String> statements = new CopyOnWriteArrayList<>();

		Recorder(DataSource dataSource) {
			super(dataSource);
		}

		@Override
		public Connection getConnection() throws SQLException {
			return record(Connection.class, super.getConnection());
		}

		private <T> T record(Class<T> type, T target) {
			return type.cast(Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] { type },
					(proxy, method, arguments) -> {
						if (arguments != null && arguments.length > 0 && arguments[0] instanceof String sql) {
							this.statements.add(sql);
						}
						try {
							Object result = method.invoke(target, arguments);
							return (result instanceof Statement statement && method.getName().equals("createStatement"))
									? record(Statement.class, statement) : result;
						}
						catch (InvocationTargetException ex) {
							throw ex.getTargetException();
						}
					}));
		}

	}

}
