package io.pgque.boot.test.app;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.annotation.PgqueListener;
import io.pgque.core.PgqueTemplate;
import io.pgque.listener.RejectMessageException;

import org.springframework.stereotype.Component;

/**
 * Listeners that are tested.
 */
@Component
class Billing {

	final List<String> charged = new CopyOnWriteArrayList<>();

	private final PgqueTemplate pgque;

	Billing(PgqueTemplate pgque) {
		this.pgque = pgque;
	}

	@PgqueListener(queue = "orders", consumer = "billing", types = "Order")
	void charge(Order order) {
		if (order.id() < 0) {
			throw new RejectMessageException("no such order");
		}
		if (order.id() == 0) {
			throw new IllegalStateException("try again");
		}
		this.charged.add(order.id() + " on " + Thread.currentThread().getName());
		this.pgque.send("receipts", new Order(order.id()));
		if (order.id() > 100) {
			this.pgque.send("orders", new Order(order.id() - 100));
		}
	}

	@PgqueListener(queue = "receipts", consumer = "printing")
	void print(List<Order> orders) {
		this.charged.add("printed " + orders.size());
	}

}
