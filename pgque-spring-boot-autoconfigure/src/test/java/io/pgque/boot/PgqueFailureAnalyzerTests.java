package io.pgque.boot;

import io.pgque.PgqueException;
import io.pgque.client.DatabaseProduct;
import org.junit.jupiter.api.Test;

import org.springframework.beans.factory.BeanCreationException;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.core.io.support.SpringFactoriesLoader;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link PgqueFailureAnalyzer}.
 */
class PgqueFailureAnalyzerTests {

	private final FailureAnalyzer analyzer = SpringFactoriesLoader
		.forDefaultResourceLocation(getClass().getClassLoader())
		.load(FailureAnalyzer.class,
				SpringFactoriesLoader.FailureHandler.handleMessage((supplier, failure) -> supplier.get()))
		.stream()
		.filter(PgqueFailureAnalyzer.class::isInstance)
		.findFirst()
		.orElseThrow();

	@Test
	void tellsProblemAndWayOut() {
		FailureAnalysis analysis = this.analyzer
			.analyze(new BeanCreationException("bean", new DatabaseProduct("PostgreSQL", 13).unsupported(null)));
		assertThat(analysis.getDescription())
			.isEqualTo("PgQue needs PostgreSQL 14 or newer, and the data source leads to version 13.");
		assertThat(analysis.getAction()).isEqualTo("Upgrade the server, or set pgque.enabled=false.");
	}

	@Test
	void leavesWhatItCannotHelpWithToOthers() {
		assertThat(this.analyzer.analyze(new PgqueException("no idea"))).isNull();
		assertThat(this.analyzer.analyze(new IllegalStateException("somebody else's"))).isNull();
	}

}
