package io.pgque.client;

import java.math.BigDecimal;
import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLDataException;
import java.sql.SQLException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Locale;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

/**
 * Reads what the engine's functions return. Columns are read by position, in the order in
 * which {@link PgqueClient} names them.
 */
final class Rows {

	private Rows() {
	}

	static Long singleLong(ResultSet rows) throws SQLException {
		return only(rows).getLong(1);
	}

	static Optional<Long> optionalLong(ResultSet rows) throws SQLException {
		return rows.next() ? Optional.of(rows.getLong(1)) : Optional.empty();
	}

	static Optional<List<Long>> optionalLongs(ResultSet rows) throws SQLException {
		List<Long> values = new ArrayList<>();
		while (rows.next()) {
			values.add(rows.getLong(1));
		}
		return values.isEmpty() ? Optional.empty() : Optional.of(values);
	}

	static Integer singleInt(ResultSet rows) throws SQLException {
		return only(rows).getInt(1);
	}

	static String singleString(ResultSet rows) throws SQLException {
		return only(rows).getString(1);
	}

	static List<Long> singleLongs(ResultSet rows) throws SQLException {
		return array(only(rows), 1);
	}

	static List<TickResult> ticks(ResultSet rows) throws SQLException {
		List<TickResult> ticks = new ArrayList<>();
		while (rows.next()) {
			TickResult.Outcome outcome = TickResult.Outcome.valueOf(rows.getString(3).toUpperCase(Locale.ROOT));
			ticks.add(new TickResult(rows.getString(1), nullableLong(rows, 2), outcome, rows.getString(4)));
		}
		return ticks;
	}

	static Page page(ResultSet rows) throws SQLException {
		List<EventRow> events = new ArrayList<>();
		boolean more = false;
		while (rows.next()) {
			events.add(event(rows));
			more = rows.getBoolean(11);
		}
		return new Page(events, more);
	}

	static TickedPage tickedPage(ResultSet rows) throws SQLException {
		List<EventRow> events = new ArrayList<>();
		boolean more = false;
		Long tickId = null;
		while (rows.next()) {
			events.add(event(rows));
			more = rows.getBoolean(11);
			tickId = nullableLong(rows, 12);
		}
		return new TickedPage(new Page(events, more), tickId);
	}

	private static EventRow event(ResultSet rows) throws SQLException {
		return new EventRow(rows.getLong(1), rows.getLong(2), rows.getString(3), rows.getString(4),
				nullableInt(rows, 5), rows.getObject(6, OffsetDateTime.class), rows.getString(7), rows.getString(8),
				rows.getString(9), rows.getString(10));
	}

	static LeaseAttempt leaseAttempt(ResultSet rows) throws SQLException {
		only(rows);
		return new LeaseAttempt(nullableLong(rows, 1), nullableSeconds(rows, 2));
	}

	static ConsumerMode consumerMode(ResultSet rows) throws SQLException {
		only(rows);
		return new ConsumerMode(ConsumerMode.Kind.of(rows.getString(1)), rows.getInt(2));
	}

	static List<SlotClaim> slotClaims(ResultSet rows) throws SQLException {
		List<SlotClaim> claims = new ArrayList<>();
		while (rows.next()) {
			claims.add(new SlotClaim(rows.getInt(1), rows.getLong(2), rows.getBoolean(3)));
		}
		return claims;
	}

	static Boolean singleBoolean(ResultSet rows) throws SQLException {
		return only(rows).getBoolean(1);
	}

	static SettleResult settled(ResultSet rows) throws SQLException {
		only(rows);
		return new SettleResult(rows.getBoolean(1), rows.getInt(2), array(rows, 3));
	}

	static List<DeadLetterRow> deadLetters(ResultSet rows) throws SQLException {
		List<DeadLetterRow> letters = new ArrayList<>();
		while (rows.next()) {
			EventRow event = new EventRow(rows.getLong(6), 0, rows.getString(9), rows.getString(10),
					nullableInt(rows, 8), rows.getObject(7, OffsetDateTime.class), rows.getString(11),
					rows.getString(12), rows.getString(13), rows.getString(14));
			letters.add(new DeadLetterRow(rows.getLong(1), rows.getString(2), rows.getString(3),
					rows.getObject(4, OffsetDateTime.class), rows.getString(5), event));
		}
		return letters;
	}

	static ReplayAllRow replayed(ResultSet rows) throws SQLException {
		only(rows);
		return new ReplayAllRow(rows.getLong(1), rows.getLong(2), rows.getString(3));
	}

	static <T> T sentOnce(ResultSet rows, SendOnceResult<T> result) throws SQLException {
		only(rows);
		return result.of(rows.getLong(1), rows.getBoolean(2), rows.getBoolean(3));
	}

	static Map<String, @Nullable String> settings(ResultSet rows) throws SQLException {
		Map<String, @Nullable String> settings = new LinkedHashMap<>();
		while (rows.next()) {
			settings.put(rows.getString(1), rows.getString(2));
		}
		return settings;
	}

	static List<KeyPlace> keyPlaces(ResultSet rows) throws SQLException {
		List<KeyPlace> places = new ArrayList<>();
		while (rows.next()) {
			places.add(new KeyPlace(rows.getLong(1), nullableLong(rows, 2), nullableLong(rows, 3)));
		}
		return places;
	}

	static List<MaintenanceHook> hooks(ResultSet rows) throws SQLException {
		List<MaintenanceHook> hooks = new ArrayList<>();
		while (rows.next()) {
			hooks.add(new MaintenanceHook(rows.getString(1), rows.getString(2)));
		}
		return hooks;
	}

	static List<QueueRow> queues(ResultSet rows) throws SQLException {
		List<QueueRow> queues = new ArrayList<>();
		while (rows.next()) {
			double perSecond = rows.getDouble(9);
			Double eventsPerSecond = rows.wasNull() ? null : perSecond;
			queues.add(new QueueRow(rows.getString(1), seconds(rows, 2), rows.getBoolean(3), rows.getBoolean(4),
					rows.getInt(5), seconds(rows, 6), seconds(rows, 7), nullableSeconds(rows, 8), eventsPerSecond,
					nullableLong(rows, 10), nullableLong(rows, 11)));
		}
		return queues;
	}

	static List<ConsumerRow> consumers(ResultSet rows) throws SQLException {
		List<ConsumerRow> consumers = new ArrayList<>();
		while (rows.next()) {
			consumers.add(new ConsumerRow(rows.getString(1), rows.getString(2), nullableSeconds(rows, 3),
					nullableSeconds(rows, 4), nullableLong(rows, 5), nullableLong(rows, 6), nullableLong(rows, 7),
					nullableLong(rows, 8)));
		}
		return consumers;
	}

	private static ResultSet only(ResultSet rows) throws SQLException {
		if (!rows.next()) {
			throw new SQLDataException("The engine returned no row");
		}
		return rows;
	}

	private static List<Long> array(ResultSet rows, int column) throws SQLException {
		Array array = rows.getArray(column);
		return (array != null) ? List.of((Long[]) array.getArray()) : List.of();
	}

	private static Duration seconds(ResultSet rows, int column) throws SQLException {
		return Intervals.fromSeconds(rows.getBigDecimal(column));
	}

	private static @Nullable Duration nullableSeconds(ResultSet rows, int column) throws SQLException {
		BigDecimal seconds = rows.getBigDecimal(column);
		return (seconds != null) ? Intervals.fromSeconds(seconds) : null;
	}

	private static @Nullable Long nullableLong(ResultSet rows, int column) throws SQLException {
		long value = rows.getLong(column);
		return rows.wasNull() ? null : value;
	}

	private static @Nullable Integer nullableInt(ResultSet rows, int column) throws SQLException {
		int value = rows.getInt(column);
		return rows.wasNull() ? null : value;
	}

}
