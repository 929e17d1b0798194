package io.pgque.client;

import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.List;
import java.util.function.Function;

import org.jspecify.annotations.Nullable;

/**
 * The four extra columns of an event.
 *
 * @param extra1 the first column, the key by convention
 * @param extra2 the second column, the idempotency key by convention
 * @param extra3 the third column
 * @param extra4 the fourth column, the headers by convention
 * @since 0.1.0
 */
public record EventExtras(@Nullable String extra1, @Nullable String extra2, @Nullable String extra3,
		@Nullable String extra4) {

	/**
	 * No extra column is set.
	 */
	public static final EventExtras NONE = new EventExtras(null, null, null, null);

	void bind(PreparedStatement statement, int first) throws SQLException {
		statement.setString(first, this.extra1);
		statement.setString(first + 1, this.extra2);
		statement.setString(first + 2, this.extra3);
		statement.setString(first + 3, this.extra4);
	}

	/**
	 * Bind four arrays, one for each column; a column that nobody sets needs none.
	 */
	static void bind(List<EventExtras> all, PreparedStatement statement, int first) throws SQLException {
		bindColumn(all, EventExtras::extra1, statement, first);
		bindColumn(all, EventExtras::extra2, statement, first + 1);
		bindColumn(all, EventExtras::extra3, statement, first + 2);
		bindColumn(all, EventExtras::extra4, statement, first + 3);
	}

	private static void bindColumn(List<EventExtras> all, Function<EventExtras, @Nullable String> column,
			PreparedStatement statement, int parameter) throws SQLException {
		if (all.stream().allMatch((extras) -> column.apply(extras) == null)) {
			statement.setNull(parameter, Types.ARRAY, "text[]");
			return;
		}
		statement.setArray(parameter,
				statement.getConnection().createArrayOf("text", all.stream().map(column).toArray()));
	}

}
