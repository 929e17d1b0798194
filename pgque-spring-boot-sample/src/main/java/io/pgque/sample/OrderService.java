package io.pgque.sample;

import java.math.BigDecimal;

import io.pgque.core.PgqueTemplate;

import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/**
 * Places orders.
 */
@Service
class OrderService {

	static final BigDecimal LIMIT = new BigDecimal("10000");

	private final OrderRepository orders;

	private final PgqueTemplate pgque;

	OrderService(OrderRepository orders, PgqueTemplate pgque) {
		this.orders = orders;
		this.pgque = pgque;
	}

	/**
	 * Save an order and tell everybody about it, both or neither: the queue is in the
	 * same database, so that one transaction holds the order and its event.
	 */
	@Transactional
	public Order place(String customer, BigDecimal total) {
		Order order = this.orders.add(customer, total);
		this.pgque.send(OrdersQueue.NAME, new OrderPlaced(order.id(), order.customer(), order.total()));
		// The event is sent already, and yet this exception takes it back: the
		// transaction rolls back, and nobody will ever see order or event.
		if (order.total().compareTo(LIMIT) > 0) {
			throw new OrderRefusedException(order.total(), LIMIT);
		}
		return order;
	}

	public Order find(long id) {
		return this.orders.find(id).orElseThrow(() -> new OrderNotFoundException(id));
	}

	@Transactional
	public Order changeCard(long id, String card) {
		if (!this.orders.changeCard(id, card)) {
			throw new OrderNotFoundException(id);
		}
		return find(id);
	}

}
