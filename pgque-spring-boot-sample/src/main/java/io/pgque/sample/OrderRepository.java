package io.pgque.sample;

import java.math.BigDecimal;
import java.util.Optional;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Repository;

/**
 * The table of orders.
 */
@Repository
class OrderRepository {

	private final JdbcClient jdbc;

	OrderRepository(JdbcClient jdbc) {
		this.jdbc = jdbc;
	}

	Order add(String customer, BigDecimal total) {
		return this.jdbc.sql("insert into orders (customer, total) values (?, ?) returning *")
			.params(customer, total)
			.query(Order.class)
			.single();
	}

	Optional<Order> find(long id) {
		return this.jdbc.sql("select * from orders where id = ?").param(id).query(Order.class).optional();
	}

	/**
	 * Return an order that nobody else may change until the end of the transaction.
	 */
	Order lock(long id) {
		return this.jdbc.sql("select * from orders where id = ? for update").param(id).query(Order.class).single();
	}

	boolean changeCard(long id, String card) {
		return this.jdbc.sql("update orders set card = ? where id = ?").params(card, id).update() == 1;
	}

	void billed(long id) {
		this.jdbc.sql("update orders set times_billed = times_billed + 1 where id = ?").param(id).update();
	}

	void shipped(long id) {
		this.jdbc.sql("update orders set times_shipped = times_shipped + 1 where id = ?").param(id).update();
	}

}
