package io.pgque.annotation;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.core.annotation.AliasFor;
import org.springframework.messaging.handler.annotation.MessageMapping;

/**
 * Makes a method a handler of the messages of a queue. On a class, it does so for each
 * method with {@link PgqueHandler}.
 *
 * <pre class="code">
 * &#064;PgqueListener(queue = "orders", consumer = "billing")
 * void onOrder(OrderPlaced event) {
 * 	...
 * }
 * </pre>
 *
 * <p>
 * A consumer has a cursor of its own: every consumer receives every message that is sent
 * after it was subscribed, which happens when the application first starts. Methods with
 * the same queue and consumer share one cursor and one container, and take the messages
 * by their event types.
 *
 * <p>
 * A method takes, in any order, the payload converted to the type of a parameter, a
 * {@link io.pgque.core.PgqueMessage}, a Spring
 * {@link org.springframework.messaging.Message}, and parameters with
 * {@link org.springframework.messaging.handler.annotation.Header @Header} or
 * {@link org.springframework.messaging.handler.annotation.Headers @Headers}. A method
 * with a list of payloads, of {@code PgqueMessage}s or of {@code Message}s, or with a
 * {@link io.pgque.listener.PgqueBatch}, takes several messages at a time. When it
 * returns, the message is done. When it throws, the error handler decides; by default the
 * message comes again later, and becomes a dead letter after the {@code max_retries} of
 * its queue. The method runs outside of any transaction and may be called more than once
 * for a message.
 *
 * <p>
 * All attributes resolve placeholders and SpEL expressions. Used as a meta-annotation,
 * they can be overridden with {@link AliasFor @AliasFor}.
 *
 * @since 0.1.0
 * @see EnablePgque
 */
@Target({ ElementType.TYPE, ElementType.METHOD, ElementType.ANNOTATION_TYPE })
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Repeatable(PgqueListeners.class)
@MessageMapping
public @interface PgqueListener {

	/**
	 * The queue. Alias for {@link #queue()}.
	 * @return the queue name
	 */
	@AliasFor("queue")
	String value() default "";

	/**
	 * The queue. It is created at start-up when it doesn't exist.
	 * @return the queue name
	 */
	@AliasFor("value")
	String queue() default "";

	/**
	 * The consumer, which names the cursor. If empty: {@link #id()}, the property
	 * {@code pgque.listener.consumer}, {@code spring.application.name}, in this order.
	 * @return the consumer name
	 */
	String consumer() default "";

	/**
	 * The event types that the method handles. If empty, the method takes every type that
	 * no other method of the same consumer takes; where several methods leave it empty,
	 * each takes the event type of its payload class.
	 *
	 * <p>
	 * Where all methods of a consumer state their types, messages of other types are
	 * skipped. Otherwise {@code pgque.listener.unknown-type-policy} says what becomes of
	 * them.
	 * @return the event types
	 */
	String[] types() default {};

	/**
	 * The id of the container, by which it is found in the
	 * {@link io.pgque.config.PgqueListenerEndpointRegistry}. If empty, one is made from
	 * queue and consumer.
	 * @return the id
	 */
	String id() default "";

	/**
	 * The {@link io.pgque.config.PgqueListenerContainerFactory}: the name of a bean, or
	 * an expression that gives one.
	 * @return the bean name, empty for the default factory
	 */
	String containerFactory() default "";

	/**
	 * The {@link io.pgque.listener.PgqueErrorHandler}: the name of a bean, or an
	 * expression that gives one.
	 * @return the bean name, empty for the default of the factory
	 */
	String errorHandler() default "";

	/**
	 * The {@link io.pgque.listener.PgqueMessageFilter} of this method: the name of a
	 * bean, or an expression that gives one. Messages that it does not accept count as
	 * processed.
	 * @return the bean name, empty for none
	 */
	String filter() default "";

	/**
	 * The {@link io.pgque.config.PgqueContainerCustomizer} that changes how the container
	 * works: the name of a bean, or an expression that gives one.
	 * @return the bean name, empty for none
	 */
	String containerCustomizer() default "";

	/**
	 * Who says that a message is done: {@code batch}, the container when the method
	 * returns, or {@code manual}, the method through an
	 * {@link io.pgque.listener.Acknowledgment}.
	 * @return the mode, empty for the default of the factory
	 */
	String ackMode() default "";

	/**
	 * Whether the method takes several messages at a time. Needed only where its
	 * parameters are misleading: {@code false} for a payload that is a list.
	 * @return {@code true} or {@code false}, empty to tell by the parameters
	 */
	String batch() default "";

	/**
	 * How the instances of the application share the consumer: {@code exclusive}, one
	 * instance at a time receives and order is kept; {@code cooperative}, each batch goes
	 * to one of all workers and there is no order; {@code partitioned}, keys are spread
	 * over slots and slots over instances, with order within a key.
	 * @return the mode, empty for the default of the factory
	 */
	String mode() default "";

	/**
	 * How many handlers run at the same time in this instance. Exclusive: those of one
	 * batch, with messages of one key one after another. Cooperative: each with a batch
	 * of its own. Partitioned: each with a slot of its own.
	 * @return a number, empty for the default of the factory
	 */
	String concurrency() default "";

	/**
	 * The number of slots of a partitioned consumer, which all instances agree about. It
	 * is the most handlers of the consumer that run at the same time in all instances.
	 * @return a number, empty for the default of the factory
	 */
	String partitions() default "";

	/**
	 * Whether a batch is received, handled and settled in one transaction: what the
	 * methods do in the same database happens exactly once. A method that throws is
	 * undone alone where transactions have savepoints, as those of JDBC; with JPA, the
	 * batch runs again without it.
	 * @return {@code true} or {@code false}, empty for the default of the factory
	 */
	String transactional() default "";

	/**
	 * Whether the container starts with the application.
	 * @return {@code true} or {@code false}, empty for the default of the factory
	 */
	String autoStartup() default "";

}
