/**
 * The ticker: makes committed events visible to consumers and keeps the log in shape.
 */
@NullMarked
package io.pgque.ticker;

import org.jspecify.annotations.NullMarked;
