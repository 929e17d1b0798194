/**
 * Turns methods of beans into listeners: checks their signature, resolves their
 * arguments, calls them.
 */
@NullMarked
package io.pgque.listener.adapter;

import org.jspecify.annotations.NullMarked;
