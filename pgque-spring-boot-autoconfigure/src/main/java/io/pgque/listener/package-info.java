/**
 * Containers that receive the events of a queue and hand them to handlers.
 */
@NullMarked
package io.pgque.listener;

import org.jspecify.annotations.NullMarked;
