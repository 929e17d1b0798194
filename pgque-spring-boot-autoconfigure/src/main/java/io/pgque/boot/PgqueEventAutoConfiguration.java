package io.pgque.boot;

import io.pgque.core.PgqueOperations;
import io.pgque.event.ApplicationEventForwarder;
import io.pgque.event.ExternalizedEventForwarder;

import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.expression.spel.support.StandardEvaluationContext;
import org.springframework.modulith.events.EventExternalizationConfiguration;
import org.springframework.modulith.events.core.ConditionalEventListener;
import org.springframework.modulith.events.support.BrokerRouting;

/**
 * Auto-configuration that publishes Spring application events to the log.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = PgqueAutoConfiguration.class,
		afterName = { "org.springframework.modulith.events.config.EventExternalizationAutoConfiguration",
				"org.springframework.modulith.events.kafka.KafkaEventExternalizerConfiguration",
				"org.springframework.modulith.events.amqp.RabbitEventExternalizerConfiguration",
				"org.springframework.modulith.events.jms.JmsEventExternalizerConfiguration",
				"org.springframework.modulith.events.messaging.SpringMessagingEventExternalizerConfiguration" })
@ConditionalOnBean(PgqueOperations.class)
@EnableConfigurationProperties(PgqueProperties.class)
public final class PgqueEventAutoConfiguration {

	@Bean
	@ConditionalOnMissingBean
	@ConditionalOnBooleanProperty(name = "pgque.application-events.enabled", matchIfMissing = true)
	static ApplicationEventForwarder pgqueApplicationEventForwarder(ObjectProvider<PgqueOperations> operations) {
		return new ApplicationEventForwarder(operations::getObject);
	}

	/**
	 * Where a broker takes what Modulith externalizes, it goes there.
	 */
	@Configuration(proxyBeanMethods = false)
	@ConditionalOnClass({ EventExternalizationConfiguration.class, BrokerRouting.class })
	@ConditionalOnBean(EventExternalizationConfiguration.class)
	@ConditionalOnBooleanProperty(name = "pgque.application-events.modulith", matchIfMissing = true)
	static class ModulithConfiguration {

		@Bean
		@ConditionalOnMissingBean({ ExternalizedEventForwarder.class, ConditionalEventListener.class })
		static ExternalizedEventForwarder pgqueExternalizedEventForwarder(
				EventExternalizationConfiguration configuration, ObjectProvider<PgqueOperations> operations,
				BeanFactory beanFactory) {
			StandardEvaluationContext context = new StandardEvaluationContext();
			context.setBeanResolver(new BeanFactoryResolver(beanFactory));
			return new ExternalizedEventForwarder(configuration, operations::getObject, context);
		}

	}

}
