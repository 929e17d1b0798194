package io.pgque.boot.test;

import java.util.Set;

import io.pgque.config.PgqueContainerCustomizer;
import io.pgque.config.PgqueContainerFactoryCustomizer;
import io.pgque.config.PgqueListenerConfigurer;
import io.pgque.core.PgqueEventTypeResolver;
import io.pgque.listener.PgqueBatchInterceptor;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageFilter;
import io.pgque.listener.PgqueMessageInterceptor;
import io.pgque.support.converter.PgqueMessageConverter;

import org.springframework.boot.test.context.filter.annotation.StandardAnnotationCustomizableTypeExcludeFilter;

/**
 * Leaves the components out that a {@link PgqueTest} isn't about.
 */
final class PgqueTypeExcludeFilter extends StandardAnnotationCustomizableTypeExcludeFilter<PgqueTest> {

	private static final Set<Class<?>> KNOWN = Set.of(PgqueMessageConverter.class, PgqueEventTypeResolver.class,
			PgqueErrorHandler.class, PgqueMessageFilter.class, PgqueMessageInterceptor.class,
			PgqueBatchInterceptor.class, PgqueContainerCustomizer.class, PgqueContainerFactoryCustomizer.class,
			PgqueListenerConfigurer.class);

	PgqueTypeExcludeFilter(Class<?> testClass) {
		super(testClass);
	}

	@Override
	protected Set<Class<?>> getKnownIncludes() {
		return KNOWN;
	}

	@Override
	protected Set<Class<?>> getComponentIncludes() {
		return Set.of(getAnnotation().getClassArray("listeners"));
	}

}
