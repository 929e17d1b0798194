package io.pgque.sample;

import java.util.EnumMap;
import java.util.Map;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.transaction.annotation.Isolation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * Where all orders are.
 */
@RestController
class StatsController {

	private final JdbcClient jdbc;

	StatsController(JdbcClient jdbc) {
		this.jdbc = jdbc;
	}

	/**
	 * In one transaction that sees one moment, so that the numbers fit together.
	 */
	@GetMapping("/stats")
	@Transactional(readOnly = true, isolation = Isolation.REPEATABLE_READ)
	public Stats stats() {
		Map<OrderState, Long> orders = new EnumMap<>(OrderState.class);
		for (OrderState state : OrderState.values()) {
			orders.put(state, 0L);
		}
		this.jdbc.sql("select state, count(*) from orders group by state")
			.query((row, number) -> Map.entry(OrderState.valueOf(row.getString(1)), row.getLong(2)))
			.list()
			.forEach((entry) -> orders.put(entry.getKey(), entry.getValue()));
		long billed = number("select coalesce(sum(times_billed), 0) from orders");
		long shipped = number("select coalesce(sum(times_shipped), 0) from orders");
		// Queues are tables. What PgQue's API doesn't count for us, SQL does.
		long deadLetters = number("select count(*) from pgque.dead_letter");
		return new Stats(orders, new Handled(billed, shipped), deadLetters);
	}

	private long number(String sql) {
		return this.jdbc.sql(sql).query(Long.class).single();
	}

	/**
	 * The answer.
	 *
	 * @param orders the number of orders by state
	 * @param handled the number of events handled by consumer
	 * @param deadLetters the number of events that a consumer gave up
	 */
	record Stats(Map<OrderState, Long> orders, Handled handled, long deadLetters) {
	}

	/**
	 * How many events each consumer has handled.
	 *
	 * @param billing the number of events handled by billing
	 * @param shipping the number of events handled by shipping
	 */
	record Handled(long billing, long shipping) {
	}

}
