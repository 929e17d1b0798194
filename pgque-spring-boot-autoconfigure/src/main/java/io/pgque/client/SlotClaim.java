package io.pgque.client;

/**
 * A slot of a partitioned consumer that an instance holds.
 *
 * @param slot the number of the slot, from 0
 * @param epoch the number of its lease
 * @param surplus whether it is beyond the instance's share, to be given up when its work
 * is done
 * @since 0.1.0
 */
public record SlotClaim(int slot, long epoch, boolean surplus) {
}
