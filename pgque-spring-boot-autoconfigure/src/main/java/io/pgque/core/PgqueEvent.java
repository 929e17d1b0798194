package io.pgque.core;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Says how events of a class travel: to which queue, and under which type. With a type of
 * its own the class may be renamed or moved without anybody noticing.
 *
 * <p>
 * A class with a {@link #queue()} can be given to {@link PgqueOperations#publish}; with
 * Spring Boot, it can be published as a Spring application event too.
 *
 * @since 0.1.0
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
public @interface PgqueEvent {

	/**
	 * The event type; when empty it is the simple name of the class.
	 * @return the event type
	 */
	String type() default "";

	/**
	 * The queue that events of this class are published to.
	 * @return the queue name; empty when none is fixed
	 */
	String queue() default "";

	/**
	 * The version of the payload's schema. When it changes in a way that older payloads
	 * can't be read any more, count it up and give listeners a
	 * {@link io.pgque.support.converter.PayloadUpcaster}. A version above 1 travels in
	 * header {@value io.pgque.support.header.PgqueHeaders#SCHEMA_VERSION}.
	 * @return the version, at least 1
	 */
	int version() default 1;

}
