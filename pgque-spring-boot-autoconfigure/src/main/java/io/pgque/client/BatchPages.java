package io.pgque.client;

import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

/**
 * Reads a batch page by page, whatever its size: what one page takes grows neither with
 * the batch nor with the pages before it. Not safe for use by several threads.
 *
 * @since 0.1.0
 */
public final class BatchPages {

	private final Statements statements;

	private final long batchId;

	private final int maxRows;

	private final long maxBytes;

	private @Nullable List<Location> map;

	private int index;

	private int rowsOfPage;

	BatchPages(Statements statements, long batchId, int maxRows, long maxBytes) {
		this.statements = statements;
		this.batchId = batchId;
		this.maxRows = maxRows;
		this.maxBytes = maxBytes;
	}

	/**
	 * Read the page behind an event. When it can't be read, the same may be asked again.
	 * @param afterId the id of the last event of the page before
	 * @return the page, empty when the batch has no further event
	 * @throws io.pgque.PgqueException when the batch is not open any more
	 * @throws IllegalStateException when the batch has not the events that its map says
	 */
	public Page next(long afterId) {
		List<Location> map = this.map;
		if (map == null) {
			map = lookThrough(afterId);
			this.map = map;
		}
		if (this.index == map.size()) {
			return new Page(List.of(), false);
		}
		Location location = map.get(this.index);
		Page page = read(afterId, location);
		this.rowsOfPage += page.rows().size();
		if (page.more()) {
			return page;
		}
		if (this.rowsOfPage != location.rows()) {
			throw new IllegalStateException("Page " + (this.index + 1) + " of batch " + this.batchId + " has "
					+ this.rowsOfPage + " events where there were " + location.rows()
					+ " when the batch was looked through. Was the database restored meanwhile?"
					+ " Nothing is lost: what is not settled comes again");
		}
		this.index++;
		this.rowsOfPage = 0;
		return new Page(page.rows(), this.index < map.size());
	}

	private List<Location> lookThrough(long afterId) {
		return this.statements.query(null, "select p.page_rows, p::text from pgque.batch_pages(?, ?, ?) p",
				(statement) -> {
					statement.setLong(1, this.batchId);
					statement.setLong(2, afterId);
					statement.setInt(3, this.maxRows);
				}, (rows) -> {
					List<Location> locations = new ArrayList<>();
					while (rows.next()) {
						locations.add(new Location(rows.getInt(1), rows.getString(2)));
					}
					return locations;
				});
	}

	private Page read(long afterId, Location location) {
		return this.statements.query(null,
				"select " + PgqueClient.EVENT_COLUMNS + " from pgque.receive_mapped_page(?, ?, ?::pgque.batch_page, ?)",
				(statement) -> {
					statement.setLong(1, this.batchId);
					statement.setLong(2, afterId);
					statement.setString(3, location.text());
					statement.setLong(4, this.maxBytes);
				}, Rows::page);
	}

	/**
	 * Where a page is.
	 *
	 * @param rows how many events it has
	 * @param text the place, in the engine's own form
	 */
	private record Location(int rows, String text) {
	}

}
