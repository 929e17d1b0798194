package io.pgque.annotation;

import io.pgque.config.PgqueListenerBeanNames;
import io.pgque.config.PgqueListenerEndpointRegistry;

import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.core.type.AnnotationMetadata;

/**
 * Registers what {@link EnablePgque} stands for, once for a context.
 */
class PgqueBootstrapConfiguration implements ImportBeanDefinitionRegistrar {

	@Override
	public void registerBeanDefinitions(AnnotationMetadata metadata, BeanDefinitionRegistry registry) {
		register(registry, PgqueListenerBeanNames.ANNOTATION_PROCESSOR, PgqueListenerAnnotationBeanPostProcessor.class);
		register(registry, PgqueListenerBeanNames.ENDPOINT_REGISTRY, PgqueListenerEndpointRegistry.class);
	}

	private static void register(BeanDefinitionRegistry registry, String name, Class<?> type) {
		if (!registry.containsBeanDefinition(name)) {
			RootBeanDefinition definition = new RootBeanDefinition(type);
			definition.setRole(BeanDefinition.ROLE_INFRASTRUCTURE);
			registry.registerBeanDefinition(name, definition);
		}
	}

}
