package io.pgque.sample;

import java.math.BigDecimal;

import io.pgque.annotation.PgqueListener;

import org.springframework.stereotype.Component;
import org.springframework.transaction.annotation.Transactional;

/**
 * Charges the customer's card for every order placed.
 */
@Component
class Billing {

	private static final BigDecimal UNLUCKY = new BigDecimal("0.13");

	private final OrderRepository orders;

	Billing(OrderRepository orders) {
		this.orders = orders;
	}

	/**
	 * The consumer "billing" of the queue "orders": PgQue remembers under this name how
	 * far it has read, across restarts.
	 * <p>
	 * When this method returns, the event is done. When it throws, what it wrote is
	 * rolled back and the event comes again later, while those behind it go on. After two
	 * retries it becomes a dead letter.
	 * <p>
	 * If the process dies between our commit and PgQue's note that the event is done, the
	 * event comes twice. Hence the question whether the order is paid: a card must not be
	 * charged twice.
	 */
	@PgqueListener(queue = OrdersQueue.NAME, consumer = "billing")
	@Transactional
	public void charge(OrderPlaced event) {
		Order order = this.orders.lock(event.orderId());
		if (!order.isPaid()) {
			chargeCard(order);
		}
		this.orders.billed(order.id());
	}

	/**
	 * Stands in for a payment provider. The card on file is declined when the total ends
	 * in .13; a card that the customer brings later always pays.
	 */
	private static void chargeCard(Order order) {
		boolean unlucky = order.total().remainder(BigDecimal.ONE).compareTo(UNLUCKY) == 0;
		if (unlucky && order.card() == null) {
			throw new CardDeclinedException(order.id(), order.total());
		}
	}

}
