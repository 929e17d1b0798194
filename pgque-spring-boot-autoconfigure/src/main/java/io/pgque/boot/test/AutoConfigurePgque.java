package io.pgque.boot.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.test.context.TestPropertySource;

/**
 * Gives a test the {@link io.pgque.test.PgqueTestOperations} and the
 * {@link io.pgque.test.PgqueListenerTestHarness} beside everything else of PgQue, and
 * lets neither ticker nor listeners run by themselves: the test says when what happens.
 * For {@code @SpringBootTest}, and for slices that need PgQue.
 *
 * @since 0.1.0
 * @see PgqueTest
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@ImportAutoConfiguration
@TestPropertySource(properties = { "pgque.ticker.mode=off", "pgque.listener.auto-startup=false" })
public @interface AutoConfigurePgque {

}
