package io.pgque.boot;

import io.micrometer.observation.ObservationRegistry;
import io.pgque.observation.MdcHandlingObserver;
import io.pgque.observation.ObservingHandlingObserver;
import io.pgque.observation.ObservingSendObserver;
import io.pgque.observation.PgqueListenerObservationConvention;
import io.pgque.observation.PgqueTemplateObservationConvention;
import org.slf4j.MDC;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;

/**
 * Auto-configuration of observation.
 *
 * @since 0.1.0
 */
@AutoConfiguration(before = { PgqueAutoConfiguration.class, PgqueListenerAutoConfiguration.class },
		afterName = { "org.springframework.boot.actuate.autoconfigure.observation.ObservationAutoConfiguration",
				"org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration" })
@ConditionalOnBooleanProperty(name = "pgque.enabled", matchIfMissing = true)
@EnableConfigurationProperties(PgqueProperties.class)
public final class PgqueObservationAutoConfiguration {

	@Configuration(proxyBeanMethods = false)
	@ConditionalOnClass(ObservationRegistry.class)
	@ConditionalOnBean(ObservationRegistry.class)
	static class ObservationConfiguration {

		@Bean
		@ConditionalOnMissingBean
		@ConditionalOnBooleanProperty(name = "pgque.template.observation-enabled", matchIfMissing = true)
		ObservingSendObserver pgqueSendObserver(ObservationRegistry registry,
				ObjectProvider<PgqueTemplateObservationConvention> conventions) {
			return new ObservingSendObserver(registry, conventions.getIfUnique());
		}

		@Bean
		@Order(0)
		@ConditionalOnMissingBean
		@ConditionalOnBooleanProperty(name = "pgque.listener.observation-enabled", matchIfMissing = true)
		ObservingHandlingObserver pgqueHandlingObserver(ObservationRegistry registry,
				ObjectProvider<PgqueListenerObservationConvention> conventions) {
			return new ObservingHandlingObserver(registry, conventions.getIfUnique());
		}

	}

	@Configuration(proxyBeanMethods = false)
	@ConditionalOnClass(MDC.class)
	static class LogContextConfiguration {

		@Bean
		@Order(1)
		@ConditionalOnMissingBean
		@ConditionalOnBooleanProperty(name = "pgque.listener.observation-enabled", matchIfMissing = true)
		MdcHandlingObserver pgqueMdcHandlingObserver() {
			return new MdcHandlingObserver();
		}

	}

}
