package io.pgque.testsupport;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import javax.sql.DataSource;

import org.springframework.jdbc.datasource.DelegatingDataSource;

/**
 * Notes the statements that are prepared on the connections of a data source.
 */
public final class StatementCounter extends DelegatingDataSource {

	private final List<String> statements = new CopyOnWriteArrayList<>();

	/**
	 * Creates a data source.
	 * @param dataSource the one that it stands for
	 */
	public StatementCounter(DataSource dataSource) {
		super(dataSource);
	}

	/**
	 * Return the statements so far, in their order.
	 */
	public List<String> statements() {
		return this.statements;
	}

	@Override
	public Connection getConnection() throws SQLException {
		Connection connection = super.getConnection();
		return (Connection) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] { Connection.class },
				(proxy, method, arguments) -> {
					if (method.getName().startsWith("prepare")) {
						this.statements.add((String) arguments[0]);
					}
					try {
						return method.invoke(connection, arguments);
					}
					catch (InvocationTargetException ex) {
						throw ex.getTargetException();
					}
				});
	}

}
