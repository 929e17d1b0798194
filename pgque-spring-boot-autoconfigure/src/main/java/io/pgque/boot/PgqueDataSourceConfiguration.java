package io.pgque.boot;

import java.util.Arrays;
import java.util.List;

import javax.sql.DataSource;

import io.pgque.PgqueException;

import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * Chooses the data source. Imported by each auto-configuration that needs it, since a
 * test slice may have one of them only.
 */
@Configuration(proxyBeanMethods = false)
class PgqueDataSourceConfiguration {

	@Bean
	@ConditionalOnMissingBean
	ChosenDataSource pgqueChosenDataSource(@PgqueDataSource ObjectProvider<DataSource> marked,
			ObjectProvider<DataSource> all, ListableBeanFactory beanFactory) {
		List<DataSource> choice = marked.stream().toList();
		if (choice.size() > 1) {
			throw new PgqueException("Several data sources are marked with @PgqueDataSource", "Mark one only", null);
		}
		DataSource chosen = choice.isEmpty() ? all.getIfUnique() : choice.get(0);
		if (chosen == null) {
			throw new PgqueException(
					"PgQue cannot tell which data source to use, there are "
							+ Arrays.toString(beanFactory.getBeanNamesForType(DataSource.class)),
					"Mark the one with PgQue's queues with @PgqueDataSource or, if it is the application's main one, "
							+ "with @Primary",
					null);
		}
		return new ChosenDataSource(chosen);
	}

	/**
	 * Holds the data source, which must not become a second bean of its type.
	 *
	 * @param dataSource the data source
	 */
	record ChosenDataSource(DataSource dataSource) {
	}

}
