package io.pgque.boot.test.app;

import io.pgque.annotation.PgqueListener;

import org.springframework.stereotype.Component;

/**
 * A listener that is not tested.
 */
@Component
class Shipping {

	@PgqueListener(queue = "orders", consumer = "shipping")
	void ship(Order order) {
		throw new IllegalStateException("not wanted in a test of billing");
	}

}
