/**
 * An order service: a tutorial to read from top to bottom.
 */
@NullMarked
package io.pgque.sample;

import org.jspecify.annotations.NullMarked;
