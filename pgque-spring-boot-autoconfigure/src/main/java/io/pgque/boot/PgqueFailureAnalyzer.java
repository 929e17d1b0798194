package io.pgque.boot;

import io.pgque.PgqueException;
import org.jspecify.annotations.Nullable;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/**
 * Shows what is wrong and the way out, for every error of PgQue that knows one: a
 * database that isn't PostgreSQL or is too old, a schema that can't be installed or isn't
 * ours, a missing privilege, an undecided data source, an impossible or unknown queue.
 */
class PgqueFailureAnalyzer extends AbstractFailureAnalyzer<PgqueException> {

	@Override
	protected @Nullable FailureAnalysis analyze(Throwable rootFailure, PgqueException cause) {
		return (cause.getRemedy() != null)
				? new FailureAnalysis(sentence(cause.getProblem()), sentence(cause.getRemedy()), cause) : null;
	}

	private static String sentence(String text) {
		return text.endsWith(".") ? text : text + ".";
	}

}
