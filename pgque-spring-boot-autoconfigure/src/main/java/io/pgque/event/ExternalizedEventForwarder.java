package io.pgque.event;

import java.util.Map;
import java.util.function.Supplier;

import io.pgque.core.PgqueEvents;
import io.pgque.core.PgqueOperations;
import org.jspecify.annotations.Nullable;

import org.springframework.context.ApplicationEvent;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.context.event.SmartApplicationListener;
import org.springframework.expression.EvaluationContext;
import org.springframework.modulith.events.EventExternalizationConfiguration;
import org.springframework.modulith.events.support.BrokerRouting;
import org.springframework.util.Assert;
import org.springframework.util.ClassUtils;

/**
 * Publishes to the log what Spring Modulith externalizes, such as events whose class is
 * annotated with {@code @Externalized("orders::#{customer}")}: the target is the queue,
 * the routing key the message key.
 *
 * <p>
 * It happens in the transaction of the publisher. So no event publication registry is
 * needed for it, nothing is resubmitted, and nothing is lost between commit and send.
 *
 * @since 0.1.0
 */
public class ExternalizedEventForwarder implements SmartApplicationListener {

	private final EventExternalizationConfiguration configuration;

	private final Supplier<PgqueOperations> operations;

	private final EvaluationContext evaluationContext;

	/**
	 * Creates a forwarder.
	 * @param configuration tells what is externalized, and where to
	 * @param operations publish the events; asked for when there is one
	 * @param evaluationContext for expressions in targets and keys
	 */
	public ExternalizedEventForwarder(EventExternalizationConfiguration configuration,
			Supplier<PgqueOperations> operations, EvaluationContext evaluationContext) {
		Assert.notNull(configuration, "configuration must not be null");
		Assert.notNull(operations, "operations must not be null");
		Assert.notNull(evaluationContext, "evaluationContext must not be null");
		this.configuration = configuration;
		this.operations = operations;
		this.evaluationContext = evaluationContext;
	}

	@Override
	public boolean supportsEventType(Class<? extends ApplicationEvent> eventType) {
		return PayloadApplicationEvent.class.isAssignableFrom(eventType);
	}

	/**
	 * It has to happen on the publisher's thread, which has the transaction.
	 */
	@Override
	public boolean supportsAsyncExecution() {
		return false;
	}

	@Override
	public void onApplicationEvent(ApplicationEvent event) {
		// A class with a queue of its own is the other forwarder's.
		if (event instanceof PayloadApplicationEvent<?> carrier && this.configuration.supports(carrier.getPayload())
				&& !PgqueEvents.isPublished(ClassUtils.getUserClass(carrier.getPayload()))) {
			forward(carrier.getPayload());
		}
	}

	private void forward(Object event) {
		BrokerRouting routing = BrokerRouting.of(this.configuration.determineTarget(event), this.evaluationContext);
		String key = routing.getKey(event);
		Map<String, Object> headers = this.configuration.getHeadersFor(event);
		Object payload = this.configuration.map(event);
		this.operations.get().sendLater(routing.getTarget(event), (message) -> {
			message.payload(payload).key(text(key));
			headers.forEach((name, value) -> message.header(name, String.valueOf(value)));
		});
	}

	private static @Nullable String text(@Nullable String key) {
		return (key == null || key.isEmpty()) ? null : key;
	}

}
