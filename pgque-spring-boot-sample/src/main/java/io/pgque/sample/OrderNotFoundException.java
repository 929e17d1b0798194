package io.pgque.sample;

/**
 * There is no order with that number.
 */
@SuppressWarnings("serial")
class OrderNotFoundException extends RuntimeException {

	OrderNotFoundException(long id) {
		super("There is no order " + id);
	}

}
