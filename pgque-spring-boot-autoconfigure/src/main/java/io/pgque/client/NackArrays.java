package io.pgque.client;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;

import org.jspecify.annotations.Nullable;

/**
 * Nacks turned into one array for each of their parts.
 */
record NackArrays(Long[] ids, String[] delays, @Nullable String[] reasons, Boolean[] dead) {

	static NackArrays of(List<Nack> nacks) {
		int size = nacks.size();
		NackArrays arrays = new NackArrays(new Long[size], new String[size], new String[size], new Boolean[size]);
		for (int i = 0; i < size; i++) {
			Nack nack = nacks.get(i);
			arrays.ids[i] = nack.eventId();
			arrays.delays[i] = Intervals.text(nack.delay());
			arrays.reasons[i] = clean(nack.reason());
			arrays.dead[i] = nack.dead();
		}
		return arrays;
	}

	void bind(PreparedStatement statement, int index) throws SQLException {
		Connection connection = statement.getConnection();
		statement.setArray(index, connection.createArrayOf("int8", this.ids));
		statement.setArray(index + 1, connection.createArrayOf("text", this.delays));
		statement.setArray(index + 2, connection.createArrayOf("text", this.reasons));
		statement.setArray(index + 3, connection.createArrayOf("bool", this.dead));
	}

	/**
	 * A reason comes from an exception's message, so it may hold anything; a NUL in it
	 * must not keep a whole batch from being settled.
	 */
	private static @Nullable String clean(@Nullable String reason) {
		return (reason != null) ? reason.replace('\0', '\uFFFD') : null;
	}

}
