package io.pgque.client;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * What came of an attempt to take a lease.
 *
 * @param epoch the number of the lease, one higher each time it changes hands;
 * {@code null} when it was not got
 * @param left how long the present holder keeps it at least; not positive when that time
 * is over, {@code null} when nobody is known to hold it
 * @since 0.1.0
 */
public record LeaseAttempt(@Nullable Long epoch, @Nullable Duration left) {
}
