package io.pgque.sample;

import java.math.BigDecimal;

/**
 * The order breaks a rule of the business.
 */
@SuppressWarnings("serial")
class OrderRefusedException extends RuntimeException {

	OrderRefusedException(BigDecimal total, BigDecimal limit) {
		super("An order of " + total.toPlainString() + " is above the limit of " + limit.toPlainString());
	}

}
