package io.pgque.testsupport;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives a test class a {@link TestDatabase} of its own, shared by its methods and nested
 * classes: as a parameter of the constructor, a test or a lifecycle method, and in fields
 * of that type, static ones included (a {@code @DynamicPropertySource} needs such a one).
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@ExtendWith(PgqueDatabaseExtension.class)
public @interface PgqueDatabase {

	/**
	 * Whether the schema pgque is there already. An empty database otherwise.
	 */
	boolean migrated() default true;

}
