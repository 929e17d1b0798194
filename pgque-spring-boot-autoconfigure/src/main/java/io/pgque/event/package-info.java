/**
 * Application events that tell what listener containers and their messages go through.
 */
@NullMarked
package io.pgque.event;

import org.jspecify.annotations.NullMarked;
