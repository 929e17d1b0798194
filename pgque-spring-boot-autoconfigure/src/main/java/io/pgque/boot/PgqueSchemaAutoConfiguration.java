package io.pgque.boot;

import javax.sql.DataSource;

import io.pgque.boot.PgqueDataSourceConfiguration.ChosenDataSource;
import io.pgque.schema.PgqueSchemaMigrator;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.sql.init.dependency.DatabaseInitializationDependencyConfigurer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;

/**
 * Auto-configuration that installs or checks the engine's schema. The names are those of
 * Boot 3 and of Boot 4: a wrong or missing one would silently leave the application
 * without PgQue.
 *
 * @since 0.1.0
 */
@AutoConfiguration(afterName = { "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
		"org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration" })
@ConditionalOnBooleanProperty(name = "pgque.enabled", matchIfMissing = true)
@ConditionalOnBean(DataSource.class)
@EnableConfigurationProperties(PgqueProperties.class)
@Import({ PgqueDataSourceConfiguration.class, DatabaseInitializationDependencyConfigurer.class })
public final class PgqueSchemaAutoConfiguration {

	@Bean
	@ConditionalOnMissingBean
	PgqueSchemaInitializer pgqueSchemaInitializer(ChosenDataSource chosen, PgqueProperties properties) {
		PgqueProperties.Schema schema = properties.schema();
		DataSource migration = MigrationDataSource.create(chosen.dataSource(), schema);
		DataSource looking = MigrationDataSource.isOwn(schema) ? migration : chosen.dataSource();
		return new PgqueSchemaInitializer(new PgqueSchemaMigrator(looking, migration), schema.mode());
	}

}
