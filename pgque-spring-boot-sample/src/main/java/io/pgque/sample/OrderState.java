package io.pgque.sample;

/**
 * How far an order is. Billing and shipping don't wait for each other, so that either may
 * be first.
 */
enum OrderState {

	/** Saved; nobody has handled its event yet. */
	PLACED,

	/** Billing is done, shipping is not. */
	PAID,

	/** Shipping is done, billing is not. */
	SHIPPED,

	/** Both are done. */
	COMPLETED

}
