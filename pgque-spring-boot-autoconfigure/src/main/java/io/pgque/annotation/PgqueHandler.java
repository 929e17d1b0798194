package io.pgque.annotation;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.core.annotation.AliasFor;

/**
 * Makes a method a handler of the listener that its class is, by a {@link PgqueListener}
 * on the class.
 *
 * <pre class="code">
 * &#064;Component
 * &#064;PgqueListener(queue = "orders", consumer = "billing")
 * class Billing {
 *
 * 	&#064;PgqueHandler
 * 	void placed(OrderPlaced event) {
 * 		...
 * 	}
 *
 * 	&#064;PgqueHandler("order.cancelled")
 * 	void cancelled(PgqueMessage message) {
 * 		...
 * 	}
 *
 * }
 * </pre>
 *
 * <p>
 * It is the same as a {@link PgqueListener} on each of the methods with the attributes of
 * that on the class.
 *
 * @since 0.1.0
 */
@Target({ ElementType.METHOD, ElementType.ANNOTATION_TYPE })
@Retention(RetentionPolicy.RUNTIME)
@Documented
public @interface PgqueHandler {

	/**
	 * The event types that the method handles. Alias for {@link #types()}.
	 * @return the event types
	 */
	@AliasFor("types")
	String[] value() default {};

	/**
	 * The event types that the method handles, as in {@link PgqueListener#types()}.
	 * @return the event types
	 */
	@AliasFor("value")
	String[] types() default {};

}
