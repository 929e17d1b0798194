/**
 * The SQL calls of the log engine, and nothing above them.
 */
@NullMarked
package io.pgque.client;

import org.jspecify.annotations.NullMarked;
