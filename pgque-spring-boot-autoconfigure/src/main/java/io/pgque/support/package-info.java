/**
 * What every received message has in common, whatever kind of queue it came from.
 */
@NullMarked
package io.pgque.support;

import org.jspecify.annotations.NullMarked;
