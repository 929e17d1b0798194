package io.pgque.client;

/**
 * A function that the maintenance runs for a queue.
 *
 * @param queue the queue name
 * @param hook the name of the function
 * @since 0.1.0
 */
public record MaintenanceHook(String queue, String hook) {
}
