package io.pgque.sample;

import java.math.BigDecimal;

/**
 * The payment provider said no. Nothing is wrong with our code, so there is no stack
 * trace to fill the log with.
 */
@SuppressWarnings("serial")
class CardDeclinedException extends RuntimeException {

	CardDeclinedException(long orderId, BigDecimal total) {
		super("Card declined: order " + orderId + ", total " + total.toPlainString(), null, false, false);
	}

}
