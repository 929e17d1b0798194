package io.pgque.client;

import java.util.List;

/**
 * A page of an open batch, in the order of event ids.
 *
 * @param rows the events; empty when there is nothing to do now
 * @param more whether the batch has events beyond this page
 * @since 0.1.0
 */
public record Page(List<EventRow> rows, boolean more) {

	/**
	 * Creates a page.
	 */
	public Page {
		rows = List.copyOf(rows);
	}

	/**
	 * Return whether the page holds no event.
	 * @return {@code true} when there is nothing to do now
	 */
	public boolean isEmpty() {
		return this.rows.isEmpty();
	}

	/**
	 * Return the id of the batch the page belongs to.
	 * @return the batch id
	 * @throws java.util.NoSuchElementException when the page is empty
	 */
	public long batchId() {
		return this.rows.iterator().next().batchId();
	}

}
