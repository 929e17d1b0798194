package io.pgque.observation;

import java.util.List;

import io.micrometer.observation.transport.Kind;
import io.micrometer.observation.transport.ReceiverContext;
import io.pgque.support.ReceivedMessage;

/**
 * What an observation of handling knows. Several messages that are handled together
 * belong to the trace of the first.
 *
 * @since 0.1.0
 */
public class PgqueReceiverContext extends ReceiverContext<ReceivedMessage> {

	private final String listenerId;

	private final List<ReceivedMessage> messages;

	/**
	 * Creates a context.
	 * @param listenerId the id of the listener
	 * @param messages the messages, not empty
	 */
	public PgqueReceiverContext(String listenerId, List<? extends ReceivedMessage> messages) {
		super((carrier, name) -> carrier.headers().get(name), Kind.CONSUMER);
		this.listenerId = listenerId;
		this.messages = List.copyOf(messages);
		setCarrier(this.messages.get(0));
		setRemoteServiceName("pgque");
	}

	/**
	 * Return the id of the listener.
	 * @return the listener id
	 */
	public String getListenerId() {
		return this.listenerId;
	}

	/**
	 * Return the messages.
	 * @return the messages, not empty
	 */
	public List<ReceivedMessage> getMessages() {
		return this.messages;
	}

}
