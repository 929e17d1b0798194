package io.pgque.testsupport;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

import org.springframework.jdbc.core.JdbcTemplate;

/**
 * A database of its own on the {@link PostgresServer}; {@link #close()} drops it with its
 * pools and roles. Its user is a superuser, others are made by {@link #createLogin}.
 */
public final class TestDatabase implements AutoCloseable {

	private static final AtomicInteger NUMBER = new AtomicInteger();

	private final PostgresServer server;

	private final String name;

	private final JdbcTemplate jdbc;

	private final List<HikariDataSource> pools = new ArrayList<>();

	private final List<String> roles = new ArrayList<>();

	private TestDatabase(PostgresServer server, String name) {
		this.server = server;
		this.name = name;
		this.jdbc = new JdbcTemplate(dataSource());
	}

	/**
	 * Create an empty database: no schema pgque in it.
	 */
	public static TestDatabase empty() {
		return create(PostgresServer.shared(), "template1");
	}

	/**
	 * Create a database with the schema pgque as the migrations leave it; a copy of a
	 * template, which takes some 50 ms.
	 */
	public static TestDatabase migrated() {
		PostgresServer server = PostgresServer.shared();
		return create(server, server.migratedTemplate());
	}

	private static TestDatabase create(PostgresServer server, String template) {
		String name = "test_" + NUMBER.incrementAndGet();
		server.administration().execute("create database " + name + " template " + template);
		return new TestDatabase(server, name);
	}

	/**
	 * Return the server this database is on.
	 */
	public PostgresServer server() {
		return this.server;
	}

	public String name() {
		return this.name;
	}

	public String url() {
		return this.server.url(this.name);
	}

	public String user() {
		return this.server.superuser();
	}

	public String password() {
		return this.server.superuser();
	}

	/**
	 * Return what a Spring Boot application needs to use this database, as
	 * {@code name=value} pairs.
	 */
	public String[] springProperties() {
		return new String[] { "spring.datasource.url=" + url(), "spring.datasource.username=" + user(),
				"spring.datasource.password=" + password() };
	}

	/**
	 * Return a data source that opens a new connection each time.
	 */
	public DataSource dataSource() {
		return this.server.superuserDataSource(this.name);
	}

	/**
	 * Return a new pool, closed with this database. With the system property
	 * {@code pgque.test.pooler} its connections lead through a transaction pooler.
	 */
	public synchronized HikariDataSource pool(int connections) {
		HikariConfig config = new HikariConfig();
		if (System.getProperty("pgque.test.pooler") != null) {
			config.setJdbcUrl(PgBouncer.shared().url(this.name) + "?prepareThreshold=0");
			config.setUsername(user());
			config.setPassword(password());
		}
		else {
			config.setDataSource(dataSource());
		}
		config.setMaximumPoolSize(connections);
		config.setMinimumIdle(0);
		HikariDataSource pool = new HikariDataSource(config);
		this.pools.add(pool);
		return pool;
	}

	/**
	 * Open a connection, which the caller closes.
	 */
	public Connection connect() throws SQLException {
		return dataSource().getConnection();
	}

	/**
	 * Return a template on {@link #dataSource()}: a new connection for each call.
	 */
	public JdbcTemplate jdbc() {
		return this.jdbc;
	}

	/**
	 * Run a query and return its rows, keyed by column name.
	 */
	public List<Map<String, Object>> query(String sql, Object... arguments) {
		return this.jdbc.queryForList(sql, arguments);
	}

	/**
	 * Run a query of one row and one column.
	 * @return the value, null if it is SQL's null
	 */
	public <T> T value(Class<T> type, String sql, Object... arguments) {
		return this.jdbc.queryForObject(sql, type, arguments);
	}

	/**
	 * Run a query of one column.
	 */
	public <T> List<T> values(Class<T> type, String sql, Object... arguments) {
		return this.jdbc.queryForList(sql, type, arguments);
	}

	/**
	 * Run an insert, update or delete.
	 * @return how many rows it concerned
	 */
	public int update(String sql, Object... arguments) {
		return this.jdbc.update(sql, arguments);
	}

	/**
	 * Run a statement or several, without arguments.
	 */
	public void execute(String sql) {
		this.jdbc.execute(sql);
	}

	/**
	 * Create a role that may log in, and nothing else unless it is a member of other
	 * roles; dropped with this database.
	 * @param memberOf roles that have to exist, such as {@code pgque_reader}
	 * @return the role, with a data source that logs in as it
	 */
	public synchronized LoginRole createLogin(String... memberOf) {
		String role = this.name + "_login_" + (this.roles.size() + 1);
		String inRole = (memberOf.length > 0) ? " in role " + String.join(", ", memberOf) : "";
		execute("create role " + role + " login password '" + role + "'" + inRole);
		this.roles.add(role);
		return new LoginRole(role, role, this.server.dataSource(this.name, role, role));
	}

	@Override
	public synchronized void close() {
		this.pools.forEach(HikariDataSource::close);
		JdbcTemplate administration = this.server.administration();
		administration.execute("drop database if exists " + this.name + " with (force)");
		this.roles.forEach((role) -> administration.execute("drop role if exists " + role));
	}

	@Override
	public String toString() {
		return url();
	}

	/**
	 * A role made for a test.
	 *
	 * @param name the name to log in with
	 * @param password its password
	 * @param dataSource opens a new connection as this role each time
	 */
	public record LoginRole(String name, String password, DataSource dataSource) {

		/**
		 * Return a template that runs its statements as this role.
		 */
		public JdbcTemplate jdbc() {
			return new JdbcTemplate(this.dataSource);
		}

	}

}
