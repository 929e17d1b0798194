package io.pgque.sample;

import io.pgque.annotation.PgqueListener;

import org.springframework.stereotype.Component;

/**
 * Ships every order placed. It is a consumer of its own: it sees every event that billing
 * sees, at its own pace, and doesn't notice when billing fails.
 */
@Component
class Shipping {

	private final OrderRepository orders;

	Shipping(OrderRepository orders) {
		this.orders = orders;
	}

	/**
	 * One statement, which is right however often the event comes. So it needs no
	 * transaction around it.
	 */
	@PgqueListener(queue = OrdersQueue.NAME, consumer = "shipping")
	public void ship(OrderPlaced event) {
		this.orders.shipped(event.orderId());
	}

}
