package io.pgque.sample;

import java.math.BigDecimal;

import org.jspecify.annotations.Nullable;

/**
 * An order as it is in the database, and as the API shows it.
 *
 * @param id the order's number
 * @param customer who placed it
 * @param total what it costs
 * @param card a card that the customer brought later; none: the card on file
 * @param state how far the order is
 * @param timesBilled how often billing has handled the order's event
 * @param timesShipped how often shipping has handled the order's event
 */
record Order(long id, String customer, BigDecimal total, @Nullable String card, OrderState state, int timesBilled,
		int timesShipped) {

	boolean isPaid() {
		return this.timesBilled > 0;
	}

}
