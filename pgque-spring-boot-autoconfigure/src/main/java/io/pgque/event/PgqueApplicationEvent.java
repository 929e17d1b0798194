package io.pgque.event;

import org.springframework.context.ApplicationEvent;

/**
 * Base of all application events of PgQue. Events are published on the thread on which
 * the thing happened; what their listeners throw is logged and changes nothing.
 *
 * @since 0.1.0
 */
public abstract class PgqueApplicationEvent extends ApplicationEvent {

	private static final long serialVersionUID = 1L;

	/**
	 * Create an event.
	 * @param source the component that publishes it
	 */
	protected PgqueApplicationEvent(Object source) {
		super(source);
	}

}
