/**
 * Annotations that make methods listeners, and what looks for them.
 */
@NullMarked
package io.pgque.annotation;

import org.jspecify.annotations.NullMarked;
