package io.pgque.observation;

import java.util.function.BiConsumer;

import io.micrometer.observation.transport.Kind;
import io.micrometer.observation.transport.SenderContext;
import org.jspecify.annotations.Nullable;

/**
 * What a send observation knows.
 *
 * @since 0.1.0
 */
public class PgqueSenderContext extends SenderContext<BiConsumer<String, String>> {

	private final String queue;

	private final @Nullable String type;

	private @Nullable Long messageId;

	/**
	 * Creates a context.
	 * @param queue the queue name
	 * @param type the event type, {@code null} for a batch of several
	 * @param headers takes the headers that carry the trace
	 */
	public PgqueSenderContext(String queue, @Nullable String type, BiConsumer<String, String> headers) {
		super((carrier, name, value) -> {
			if (carrier != null) {
				carrier.accept(name, value);
			}
		}, Kind.PRODUCER);
		setCarrier(headers);
		setRemoteServiceName("pgque");
		this.queue = queue;
		this.type = type;
	}

	/**
	 * Return the queue name.
	 * @return the queue name
	 */
	public String getQueue() {
		return this.queue;
	}

	/**
	 * Return the event type.
	 * @return the event type, {@code null} for a batch of several
	 */
	public @Nullable String getType() {
		return this.type;
	}

	/**
	 * Return the message id.
	 * @return the message id, {@code null} while it isn't known, and for batches
	 */
	public @Nullable Long getMessageId() {
		return this.messageId;
	}

	void setMessageId(@Nullable Long messageId) {
		this.messageId = messageId;
	}

}
