package io.pgque.client;

import org.jspecify.annotations.Nullable;

/**
 * What a tick and the receive behind it gave.
 *
 * @param page the page
 * @param tickId the id of the tick, {@code null} when none was taken or the page is empty
 * @since 0.2.0
 */
public record TickedPage(Page page, @Nullable Long tickId) {
}
