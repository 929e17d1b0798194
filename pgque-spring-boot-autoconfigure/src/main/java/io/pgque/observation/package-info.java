/**
 * Observation of what is sent and handled: metrics, traces and log context.
 */
@NullMarked
package io.pgque.observation;

import org.jspecify.annotations.NullMarked;
