package io.pgque.schema;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.regex.Pattern;

import javax.sql.DataSource;

import org.springframework.jdbc.datasource.DelegatingDataSource;

/**
 * Keeps Flyway from changing the session: behind a transaction pooler, the session is
 * everybody's, and a changed search path would go on to whoever uses it next. Flyway sets
 * the search path of the session and puts its role back; here the path is set for the
 * transaction at most, and the role, which nobody changes, is left alone. The migrations
 * name all they use with its schema.
 */
final class TransactionPoolerDataSource extends DelegatingDataSource {

	private static final Pattern SEARCH_PATH = Pattern.compile("(set_config\\('search_path', \\?, )false\\)",
			Pattern.CASE_INSENSITIVE);

	private static final Pattern SET_ROLE = Pattern.compile("set role\\b.*", Pattern.CASE_INSENSITIVE);

	TransactionPoolerDataSource(DataSource dataSource) {
		super(dataSource);
	}

	@Override
	public Connection getConnection() throws SQLException {
		return proxy(super.getConnection());
	}

	@Override
	public Connection getConnection(String username, String password) throws SQLException {
		return proxy(super.getConnection(username, password));
	}

	private static Connection proxy(Connection connection) {
		return (Connection) Proxy.newProxyInstance(TransactionPoolerDataSource.class.getClassLoader(),
				new Class<?>[] { Connection.class }, new Handler(connection));
	}

	static String rewrite(String sql) {
		if (SET_ROLE.matcher(sql).matches()) {
			return "select 1";
		}
		return SEARCH_PATH.matcher(sql).replaceFirst("$1true)");
	}

	private record Handler(Connection connection) implements InvocationHandler {

		@Override
		public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
			if (method.getName().equals("prepareStatement") && arguments[0] instanceof String sql) {
				arguments[0] = rewrite(sql);
			}
			try {
				return method.invoke(this.connection, arguments);
			}
			catch (InvocationTargetException ex) {
				throw ex.getTargetException();
			}
		}

	}

}
