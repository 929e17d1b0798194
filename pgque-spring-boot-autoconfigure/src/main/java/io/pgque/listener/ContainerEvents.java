package io.pgque.listener;

import java.time.Duration;

import io.pgque.event.BatchAbortedEvent;
import io.pgque.event.ConsumerLeaseAcquiredEvent;
import io.pgque.event.ConsumerLeaseLostEvent;
import io.pgque.event.HandlerStuckEvent;
import io.pgque.event.ListenerContainerFailingEvent;
import io.pgque.event.ListenerContainerIdleEvent;
import io.pgque.event.ListenerContainerNoLongerIdleEvent;
import io.pgque.event.ListenerContainerPausedEvent;
import io.pgque.event.ListenerContainerRecoveredEvent;
import io.pgque.event.ListenerContainerResumedEvent;
import io.pgque.event.ListenerContainerStartedEvent;
import io.pgque.event.ListenerContainerStoppedEvent;
import io.pgque.event.MessageDeadLetteredEvent;
import io.pgque.event.PgqueApplicationEvent;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.context.ApplicationEventPublisher;

/**
 * Publishes the events of one container. What their listeners throw ends here.
 */
final class ContainerEvents {

	private static final Log logger = LogFactory.getLog(ContainerEvents.class);

	private final Object source;

	private final ListenerIdentity identity;

	private final @Nullable ApplicationEventPublisher publisher;

	ContainerEvents(Object source, ListenerIdentity identity, @Nullable ApplicationEventPublisher publisher) {
		this.source = source;
		this.identity = identity;
		this.publisher = publisher;
	}

	void started() {
		publish(new ListenerContainerStartedEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer()));
	}

	void stopped(ListenerContainerStoppedEvent.Reason reason) {
		publish(new ListenerContainerStoppedEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), reason));
	}

	void paused() {
		publish(new ListenerContainerPausedEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer()));
	}

	void resumed() {
		publish(new ListenerContainerResumedEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer()));
	}

	void failing(Throwable failure) {
		publish(new ListenerContainerFailingEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), failure));
	}

	void recovered(Duration failingTime) {
		publish(new ListenerContainerRecoveredEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), failingTime));
	}

	void leaseAcquired(String instance, long epoch, @Nullable Integer slot) {
		publish(new ConsumerLeaseAcquiredEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), instance, epoch, slot));
	}

	void leaseLost(String instance, long epoch, @Nullable Integer slot) {
		publish(new ConsumerLeaseLostEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), instance, epoch, slot));
	}

	void idle(Duration idleTime) {
		publish(new ListenerContainerIdleEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), idleTime));
	}

	void noLongerIdle(Duration idleTime) {
		publish(new ListenerContainerNoLongerIdleEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), idleTime));
	}

	void stuck(long messageId, Duration handlingTime, String threadName, boolean handedOver) {
		publish(new HandlerStuckEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), messageId, handlingTime, threadName, handedOver));
	}

	void batchAborted(long batchId, long messageId, Duration pause, Exception failure) {
		publish(new BatchAbortedEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), batchId, messageId, pause, failure));
	}

	void deadLettered(long messageId, @Nullable String type, int deliveryAttempt, @Nullable String reason) {
		publish(new MessageDeadLetteredEvent(this.source, this.identity.listenerId(), this.identity.queue(),
				this.identity.consumer(), messageId, type, deliveryAttempt, reason));
	}

	private void publish(PgqueApplicationEvent event) {
		if (this.publisher == null) {
			return;
		}
		try {
			this.publisher.publishEvent(event);
		}
		catch (VirtualMachineError ex) {
			throw ex;
		}
		catch (Throwable ex) {
			logger.warn("A listener of " + event + " failed; delivery goes on", ex);
		}
	}

}
