package io.pgque.annotation;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.context.annotation.Import;

/**
 * Looks for {@link PgqueListener} methods on the beans of the application. Spring Boot
 * applications have it by auto-configuration; others use it on a configuration class and
 * define a {@link io.pgque.config.DefaultPgqueListenerContainerFactory} with the name
 * {@code pgqueListenerContainerFactory}.
 *
 * @since 0.1.0
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Import(PgqueBootstrapConfiguration.class)
public @interface EnablePgque {

}
