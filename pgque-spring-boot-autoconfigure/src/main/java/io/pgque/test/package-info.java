/**
 * What tests of applications use: ticks, listeners without threads, and a record of what
 * was handled.
 */
@NullMarked
package io.pgque.test;

import org.jspecify.annotations.NullMarked;
