package io.pgque.boot;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;

import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.test.autoconfigure.jdbc.AutoConfigureDataSourceInitialization;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.test.context.junit.jupiter.SpringJUnitConfig;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Boot's slices for JDBC, JPA and jOOQ carry
 * {@link AutoConfigureDataSourceInitialization} and get the schema by it, so that
 * migrations that create queues work there too.
 */
@SpringJUnitConfig
@PgqueDatabase(migrated = false)
@AutoConfigureDataSourceInitialization
@ImportAutoConfiguration(DataSourceAutoConfiguration.class)
class SchemaInTestSliceTests {

	static TestDatabase database;

	@DynamicPropertySource
	static void properties(DynamicPropertyRegistry registry) {
		registry.add("spring.datasource.url", () -> database.url());
		registry.add("spring.datasource.username", () -> database.user());
		registry.add("spring.datasource.password", () -> database.password());
	}

	@Test
	void schemaIsInstalledAndNothingElse(@Autowired ApplicationContext context) {
		assertThat(database.value(String.class, "select pgque.version()")).isNotEmpty();
		assertThat(context.containsBean("pgqueTemplate")).isFalse();
		assertThat(context.containsBean("pgqueTicker")).isFalse();
	}

	@Configuration(proxyBeanMethods = false)
	static class Slice {

	}

}
