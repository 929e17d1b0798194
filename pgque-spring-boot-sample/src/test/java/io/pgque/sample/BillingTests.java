package io.pgque.sample;

import java.math.BigDecimal;

import io.pgque.boot.test.AutoConfigurePgque;
import io.pgque.test.DrainResult;
import io.pgque.test.PgqueTestOperations;
import org.junit.jupiter.api.Test;

import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * What billing does with events, without anything that runs by itself: the test says when
 * events are handled, and has nothing to wait for.
 */
@SpringBootTest(webEnvironment = WebEnvironment.NONE)
@AutoConfigurePgque
class BillingTests {

	private static final String LISTENER = "orders.billing";

	@Autowired
	private OrderService orders;

	@Autowired
	private PgqueTestOperations pgque;

	@Test
	void orderIsBilledOnce() {
		Order order = this.orders.place("Ada", new BigDecimal("42.50"));
		assertThat(this.orders.find(order.id()).timesBilled()).isZero();
		assertThat(this.pgque.drain(LISTENER).handled()).isOne();
		this.pgque.send(OrdersQueue.NAME, new OrderPlaced(order.id(), order.customer(), order.total()));
		this.pgque.drain(LISTENER);
		assertThat(this.orders.find(order.id()).isPaid()).isTrue();
	}

	@Test
	void declinedCardIsTriedAgainAndBecomesADeadLetter() {
		Order order = this.orders.place("Bob", new BigDecimal("66.13"));
		assertThat(this.pgque.drain(LISTENER)).isEqualTo(new DrainResult(0, 0, 1, 0));
		assertThat(this.pgque.retriesDue(OrdersQueue.NAME)).isOne();
		assertThat(this.pgque.drain(LISTENER).retried()).isOne();
		this.pgque.retriesDue(OrdersQueue.NAME);
		assertThat(this.pgque.drain(LISTENER).deadLettered()).isOne();
		assertThat(this.pgque.deadLetters(OrdersQueue.NAME)).singleElement()
			.satisfies((dead) -> assertThat(dead.reason()).contains("Card declined: order " + order.id()));
	}

}
