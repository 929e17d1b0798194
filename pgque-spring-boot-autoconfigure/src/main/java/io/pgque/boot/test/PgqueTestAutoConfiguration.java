package io.pgque.boot.test;

import javax.sql.DataSource;

import io.pgque.boot.PgqueAutoConfiguration;
import io.pgque.boot.PgqueListenerAutoConfiguration;
import io.pgque.client.PgqueClient;
import io.pgque.client.TestingClient;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.core.PgqueOperations;
import io.pgque.test.PgqueListenerTestHarness;
import io.pgque.test.PgqueTestOperations;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * Auto-configuration of what tests inject, by {@link AutoConfigurePgque}.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = { PgqueAutoConfiguration.class, PgqueListenerAutoConfiguration.class })
@ConditionalOnBean({ PgqueOperations.class, PgqueListenerEndpointRegistry.class })
public final class PgqueTestAutoConfiguration {

	@Bean
	@ConditionalOnMissingBean
	PgqueTestOperations pgqueTestOperations(DataSource dataSource, PgqueClient client, PgqueOperations operations,
			PgqueAdminOperations admin, PgqueListenerEndpointRegistry registry) {
		TransactionTemplate transactions = new TransactionTemplate(new DataSourceTransactionManager(dataSource));
		transactions.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		return new PgqueTestOperations(client, new TestingClient(dataSource), operations, admin, registry,
				transactions);
	}

	@Bean
	@ConditionalOnMissingBean
	PgqueListenerTestHarness pgqueListenerTestHarness() {
		return new PgqueListenerTestHarness();
	}

}
