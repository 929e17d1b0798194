package io.pgque.boot;

import java.sql.Connection;
import java.sql.SQLException;

import javax.sql.DataSource;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

import org.springframework.core.InfrastructureProxy;
import org.springframework.jdbc.datasource.DelegatingDataSource;

/**
 * The application's pool and, once that is closed, connections beside it. A handler that
 * closes the application returns after its pool was closed; what it did is to be settled
 * nevertheless. To transactions it is the pool.
 */
final class OutlivingDataSource extends DelegatingDataSource implements InfrastructureProxy {

	private static final Log logger = LogFactory.getLog(OutlivingDataSource.class);

	private final DataSource pool;

	private final DataSource direct;

	OutlivingDataSource(DataSource pool, DataSource direct) {
		super(pool);
		this.pool = pool;
		this.direct = direct;
	}

	@Override
	public Object getWrappedObject() {
		return this.pool;
	}

	@Override
	public Connection getConnection() throws SQLException {
		try {
			return this.pool.getConnection();
		}
		catch (SQLException ex) {
			if (!PoolProperties.isClosed(this.pool)) {
				throw ex;
			}
			logger.debug("The pool is closed; what is left to do needs a connection beside it", ex);
			return this.direct.getConnection();
		}
	}

}
