package io.pgque.boot;

import java.util.List;

import javax.sql.DataSource;

import io.pgque.boot.PgqueDataSourceConfiguration.ChosenDataSource;
import io.pgque.core.TickDelegate;
import io.pgque.core.TickListener;
import io.pgque.ticker.PgqueTicker;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.LazyInitializationExcludeFilter;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;

/**
 * Auto-configuration of the ticker.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = PgqueSchemaAutoConfiguration.class,
		afterName = { "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
				"org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration" })
@ConditionalOnBooleanProperty(name = "pgque.enabled", matchIfMissing = true)
@ConditionalOnBean(DataSource.class)
@EnableConfigurationProperties(PgqueProperties.class)
@Import(PgqueDataSourceConfiguration.class)
public final class PgqueTickerAutoConfiguration {

	@Bean
	@ConditionalOnMissingBean
	@DependsOnDatabaseInitialization
	PgqueTicker pgqueTicker(ChosenDataSource chosen, PgqueProperties properties,
			ObjectProvider<TickListener> tickListeners, ObjectProvider<TickDelegate> tickDelegates) {
		PgqueTicker ticker = new PgqueTicker(chosen.dataSource(), properties.ticker().toSettings(),
				properties.ticker().statementTimeout());
		List<TickListener> listeners = tickListeners.orderedStream().toList();
		ticker.setTickListener((queue, tickId) -> listeners.forEach((listener) -> listener.ticked(queue, tickId)));
		List<TickDelegate> delegates = tickDelegates.orderedStream().toList();
		ticker.setTickDelegate(
				(queue, handBack) -> delegates.stream().anyMatch((delegate) -> delegate.offerTick(queue, handBack)));
		return ticker;
	}

	/**
	 * Nobody asks for the ticker, and without it nothing is delivered.
	 */
	@Bean
	static LazyInitializationExcludeFilter eagerPgqueTicker() {
		return LazyInitializationExcludeFilter.forBeanTypes(PgqueTicker.class);
	}

}
