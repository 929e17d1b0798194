/**
 * Conversion between payload objects and the text that an event carries.
 */
@NullMarked
package io.pgque.support.converter;

import org.jspecify.annotations.NullMarked;
