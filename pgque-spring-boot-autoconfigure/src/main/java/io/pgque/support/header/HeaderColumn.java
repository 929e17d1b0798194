package io.pgque.support.header;

/**
 * The event column that carries message headers.
 *
 * @since 0.1.0
 */
public enum HeaderColumn {

	/**
	 * Headers are neither written nor read.
	 */
	NONE,

	/**
	 * The third extra column.
	 */
	EXTRA3,

	/**
	 * The fourth extra column.
	 */
	EXTRA4

}
