package io.pgque.boot;

import java.sql.SQLException;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/**
 * Names the setting that an application behind a transaction pooler lacks. The driver
 * prepares even what begins and ends a transaction, so that the failure may come from
 * anything that uses the database, and at the first start.
 */
class PreparedStatementFailureAnalyzer extends AbstractFailureAnalyzer<SQLException> {

	private static final Set<String> STATES = Set.of("26000", "42P05");

	@Override
	protected @Nullable FailureAnalysis analyze(Throwable rootFailure, SQLException cause) {
		if (cause.getSQLState() == null || !STATES.contains(cause.getSQLState())) {
			return null;
		}
		return new FailureAnalysis("The connection pooler loses prepared statements: " + cause.getMessage() + ".",
				"Behind a transaction pooler add prepareThreshold=0 to the JDBC URL (spring.datasource.url), or let the "
						+ "pooler manage prepared statements (PgBouncer 1.21 and later: max_prepared_statements).",
				cause);
	}

}
