package io.pgque.sample;

import java.math.BigDecimal;

/**
 * The event: what others need to know about an order that was placed. It travels as JSON.
 *
 * @param orderId the order
 * @param customer who placed it
 * @param total what it costs
 */
record OrderPlaced(long orderId, String customer, BigDecimal total) {
}
