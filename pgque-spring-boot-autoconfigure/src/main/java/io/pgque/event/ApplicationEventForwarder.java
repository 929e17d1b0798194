package io.pgque.event;

import java.util.function.Supplier;

import io.pgque.core.PgqueEvents;
import io.pgque.core.PgqueOperations;

import org.springframework.context.ApplicationEvent;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.context.event.SmartApplicationListener;
import org.springframework.util.Assert;
import org.springframework.util.ClassUtils;

/**
 * Publishes Spring application events to the log, in the transaction of their publisher:
 * those whose class names a queue with {@link io.pgque.core.PgqueEvent}. Handlers in the
 * application get them too, as ever.
 *
 * @since 0.1.0
 */
public class ApplicationEventForwarder implements SmartApplicationListener {

	private final Supplier<PgqueOperations> operations;

	/**
	 * Creates a forwarder.
	 * @param operations publish the events; asked for when there is one, since
	 * application events are published before beans are complete
	 */
	public ApplicationEventForwarder(Supplier<PgqueOperations> operations) {
		Assert.notNull(operations, "operations must not be null");
		this.operations = operations;
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
		if (event instanceof PayloadApplicationEvent<?> carrier
				&& PgqueEvents.isPublished(ClassUtils.getUserClass(carrier.getPayload()))) {
			this.operations.get().publish(carrier.getPayload());
		}
	}

}
