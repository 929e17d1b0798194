/**
 * Names of message headers and their form on the wire.
 */
@NullMarked
package io.pgque.support.header;

import org.jspecify.annotations.NullMarked;
