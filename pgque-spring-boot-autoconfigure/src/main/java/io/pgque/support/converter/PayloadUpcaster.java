package io.pgque.support.converter;

import io.pgque.support.ReceivedMessage;

/**
 * Brings payloads of an event type from one schema version to the next, before they are
 * converted. So a class needs to know its newest form only, while messages of older forms
 * wait in a queue or come from senders that are not upgraded yet.
 *
 * @since 0.1.0
 */
public interface PayloadUpcaster {

	/**
	 * Return the event type whose payloads are brought forward.
	 * @return the event type
	 */
	String type();

	/**
	 * Return the version that is brought to the next one.
	 * @return the version, at least 1
	 */
	int fromVersion();

	/**
	 * Bring a payload forward.
	 * @param payload the payload's text in the older version
	 * @param message the message it is of, whose payload is still the one that was sent
	 * @return the text in the next version
	 * @throws Exception when that isn't possible: the message is treated as one that
	 * can't be converted
	 */
	String upcast(String payload, ReceivedMessage message) throws Exception;

}
