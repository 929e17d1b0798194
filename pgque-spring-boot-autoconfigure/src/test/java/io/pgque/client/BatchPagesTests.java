package io.pgque.client;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

import io.pgque.PgqueException;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/**
 * Tests for {@link BatchPages}.
 */
@PgqueDatabase
class BatchPagesTests {

	private static int number;

	private final TestDatabase database;

	private final PgqueClient client;

	private final String queue = "queue-" + (++number);

	BatchPagesTests(TestDatabase database) {
		this.database = database;
		this.client = new PgqueClient(database.dataSource());
	}

	@ParameterizedTest
	@CsvSource({ "100, 100000", "101, 100000", "99, 100000", "10, 100000", "7, 100000", "1, 100000", "10, 35",
			"10, 1" })
	void readsTheBatchOnceAndInOrder(int maxRows, long maxBytes) {
		Page page = open(100, maxRows, maxBytes);
		BatchPages pages = this.client.batchPages(page.batchId(), maxRows, maxBytes);
		List<Long> ids = new ArrayList<>(ids(page));
		while (page.more()) {
			page = pages.next(ids.get(ids.size() - 1));
			assertThat(page.rows()).hasSizeBetween(1, maxRows);
			ids.addAll(ids(page));
		}
		assertThat(ids).isEqualTo(LongStream.rangeClosed(1, 100).boxed().toList());
		assertThat(pages.next(100).rows()).isEmpty();
	}

	@Test
	void batchMustBeOpen() {
		Page page = open(10, 5, 1000);
		BatchPages before = this.client.batchPages(page.batchId(), 5, 1000);
		BatchPages opened = this.client.batchPages(page.batchId(), 2, 1000);
		opened.next(5);
		this.client.settle(page.batchId(), null, List.of());
		assertThatExceptionOfType(PgqueException.class).isThrownBy(() -> before.next(5));
		assertThatExceptionOfType(PgqueException.class).isThrownBy(() -> opened.next(7));
	}

	@Test
	void eventsThatAreGoneAreNoticed() throws Exception {
		Page page = open(10, 3, 1000);
		BatchPages pages = this.client.batchPages(page.batchId(), 3, 1000);
		assertThat(ids(pages.next(3))).containsExactly(4L, 5L, 6L);
		try (var connection = this.database.connect(); var statement = connection.createStatement()) {
			statement.execute("delete from pgque.event where ev_id = 8 and ev_queue ="
					+ " (select queue_id from pgque.queue where queue_name = '" + this.queue + "')");
		}
		assertThatIllegalStateException().isThrownBy(() -> pages.next(6))
			.withMessageContaining("Page 2")
			.withMessageContaining("has 2 events where there were 3");
	}

	private Page open(int events, int maxRows, long maxBytes) {
		this.client.createQueue(this.queue);
		this.client.subscribe(this.queue, "c");
		this.client.sendBatch(this.queue, "t",
				IntStream.range(0, events).mapToObj((i) -> "payload-%02d".formatted(i)).toList());
		this.client.tick(List.of(this.queue));
		return this.client.receiveBatch(this.queue, "c", maxRows, maxBytes);
	}

	private static List<Long> ids(Page page) {
		return page.rows().stream().map(EventRow::id).toList();
	}

}
