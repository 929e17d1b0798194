package io.pgque.annotation;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Holds several {@link PgqueListener} annotations of one method.
 *
 * @since 0.1.0
 */
@Target({ ElementType.TYPE, ElementType.METHOD, ElementType.ANNOTATION_TYPE })
@Retention(RetentionPolicy.RUNTIME)
@Documented
public @interface PgqueListeners {

	/**
	 * The annotations.
	 * @return the annotations
	 */
	PgqueListener[] value();

}
