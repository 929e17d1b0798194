package io.pgque.boot;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import javax.sql.DataSource;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.pgque.boot.PgqueDataSourceConfiguration.ChosenDataSource;
import io.pgque.client.InboxClient;
import io.pgque.client.PgqueClient;
import io.pgque.core.CommitListener;
import io.pgque.core.PgqueAdmin;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.core.PgqueEventTypeResolver;
import io.pgque.core.PgqueInbox;
import io.pgque.core.PgqueOperations;
import io.pgque.core.PgqueQueue;
import io.pgque.core.PgqueTemplate;
import io.pgque.core.SendObserver;
import io.pgque.core.SimpleEventTypeResolver;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.support.converter.Jackson3MessageConverter;
import io.pgque.support.converter.PgqueMessageConverter;
import tools.jackson.databind.json.JsonMapper;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.LazyInitializationExcludeFilter;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/**
 * Auto-configuration of what an application calls: template and administration.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = PgqueSchemaAutoConfiguration.class,
		afterName = { "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
				"org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration",
				"org.springframework.boot.autoconfigure.jackson.JacksonAutoConfiguration",
				"org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration",
				"org.springframework.boot.jackson2.autoconfigure.Jackson2AutoConfiguration" })
@ConditionalOnBooleanProperty(name = "pgque.enabled", matchIfMissing = true)
@ConditionalOnBean(DataSource.class)
@EnableConfigurationProperties(PgqueProperties.class)
@Import(PgqueDataSourceConfiguration.class)
public final class PgqueAutoConfiguration {

	@Bean
	@ConditionalOnMissingBean
	@DependsOnDatabaseInitialization
	PgqueClient pgqueClient(ChosenDataSource chosen) {
		return new PgqueClient(chosen.dataSource());
	}

	@Bean
	@ConditionalOnMissingBean
	PgqueEventTypeResolver pgqueEventTypeResolver() {
		return new SimpleEventTypeResolver();
	}

	@Bean
	@ConditionalOnMissingBean(PgqueOperations.class)
	@DependsOnDatabaseInitialization
	PgqueTemplate pgqueTemplate(ChosenDataSource chosen, PgqueProperties properties, PgqueMessageConverter converter,
			PgqueEventTypeResolver eventTypeResolver, ObjectProvider<SendObserver> sendObservers,
			ObjectProvider<CommitListener> commitListeners) {
		PgqueTemplate template = new PgqueTemplate(chosen.dataSource(), converter);
		template.setTransactionRequired(properties.template().requireTransaction());
		template.setHeaderColumn(properties.headers().column());
		template.setEventTypeResolver(eventTypeResolver);
		template.setSendObserver(sendObservers.getIfUnique(() -> SendObserver.NONE));
		List<CommitListener> listeners = commitListeners.orderedStream().toList();
		template.setCommitListener((queues) -> listeners.forEach((listener) -> listener.committed(queues)));
		return template;
	}

	@Bean
	static TransactionFollowers pgqueTransactionFollowers() {
		return new TransactionFollowers();
	}

	@Bean
	@ConditionalOnMissingBean(PgqueAdminOperations.class)
	@DependsOnDatabaseInitialization
	PgqueAdmin pgqueAdmin(ChosenDataSource chosen, PgqueProperties properties, ObjectProvider<PgqueQueue> queues) {
		PgqueAdmin admin = new PgqueAdmin(chosen.dataSource(), definitions(queues, properties));
		admin.setAutoCreate(properties.admin().autoCreate());
		admin.setQueueDefaults(properties.queueDefaults().toQueue());
		admin.setHeaderColumn(properties.headers().column());
		return admin;
	}

	/**
	 * Properties win over beans, as deployment does over code.
	 */
	private static Collection<PgqueQueue> definitions(ObjectProvider<PgqueQueue> queues, PgqueProperties properties) {
		Map<String, PgqueQueue> definitions = new LinkedHashMap<>();
		queues.orderedStream()
			.forEach((queue) -> definitions.merge(queue.getName(), queue, PgqueQueue::withSettingsOf));
		properties.queues()
			.forEach((name, queue) -> definitions.merge(name, queue.toQueue(name), PgqueQueue::withSettingsOf));
		return definitions.values();
	}

	@Bean
	@ConditionalOnMissingBean
	@ConditionalOnBooleanProperty("pgque.inbox.enabled")
	@DependsOnDatabaseInitialization
	PgqueInbox pgqueInbox(ChosenDataSource chosen, PgqueProperties properties) {
		return new PgqueInbox(new InboxClient(chosen.dataSource()), properties.inbox().retention());
	}

	/**
	 * Creates queues at start-up, which nobody may ask for.
	 */
	@Bean
	static LazyInitializationExcludeFilter eagerPgqueAdmin() {
		return LazyInitializationExcludeFilter.forBeanTypes(PgqueAdmin.class);
	}

	@Bean
	@ConditionalOnMissingBean(PgqueMessageConverter.class)
	Jackson2MessageConverter pgqueMessageConverter(ObjectProvider<ObjectMapper> mappers) {
		ObjectMapper mapper = mappers.getIfUnique();
		// A mapper of another format, such as YAML, is an ObjectMapper too.
		return (mapper != null && Objects.equals(mapper.getFactory().getFormatName(), "JSON"))
				? new Jackson2MessageConverter(mapper) : new Jackson2MessageConverter();
	}

	@Configuration(proxyBeanMethods = false)
	@ConditionalOnClass(JsonMapper.class)
	static class Jackson3Configuration {

		@Bean
		@ConditionalOnSingleCandidate(JsonMapper.class)
		@ConditionalOnMissingBean(PgqueMessageConverter.class)
		Jackson3MessageConverter pgqueMessageConverter(JsonMapper mapper) {
			return new Jackson3MessageConverter(mapper);
		}

	}

}
