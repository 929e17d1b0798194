/**
 * What an application calls: sending, queue definitions, administration and dead letters.
 */
@NullMarked
package io.pgque.core;

import org.jspecify.annotations.NullMarked;
