package io.pgque.ticker;

/**
 * When this instance ticks.
 *
 * @since 0.1.0
 */
public enum TickerMode {

	/**
	 * On an interval and after its own commits; where the database has a scheduler of its
	 * own for the ticker, only after its own commits.
	 */
	AUTO,

	/**
	 * On an interval and after its own commits, whatever else ticks.
	 */
	ALWAYS,

	/**
	 * Never. Other instances, or a scheduler of the database, have to.
	 */
	OFF

}
