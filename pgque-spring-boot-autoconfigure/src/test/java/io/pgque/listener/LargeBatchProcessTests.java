package io.pgque.listener;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

import io.pgque.client.PgqueClient;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * One batch that is several times larger than the heap of who handles it. A shorter form
 * runs in the build, a million messages with the Maven profile {@code soak}.
 */
@PgqueDatabase
class LargeBatchProcessTests {

	private static final boolean SOAK = Boolean.getBoolean("pgque.soak");

	private static final int MESSAGES = SOAK ? 1_000_000 : 150_000;

	private static final String HEAP = SOAK ? "-Xmx256m" : "-Xmx40m";

	private final TestDatabase database;

	LargeBatchProcessTests(TestDatabase database) {
		this.database = database;
	}

	@Test
	void batchLargerThanTheHeapIsHandledInOrder(@TempDir Path folder) throws Exception {
		PgqueClient client = new PgqueClient(this.database.dataSource());
		client.createQueue("large");
		client.subscribe("large", ListenerFixture.CONSUMER);
		this.database.query(
				"select cardinality(pgque.send_batch('large', 't', array_fill(repeat('x', 1000), array[?])))",
				MESSAGES);
		client.tickAll();
		Path log = folder.resolve("log");
		Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), HEAP,
				"-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-cp", System.getProperty("java.class.path"),
				LargeBatchMain.class.getName(), this.database.url(), this.database.user(), "large")
			.redirectErrorStream(true)
			.redirectOutput(log.toFile())
			.start();
		try {
			assertThat(process.waitFor(5, TimeUnit.MINUTES)).isTrue();
			assertThat(Files.readString(log)).contains("handled " + MESSAGES + ", misplaced 0");
			assertThat(process.exitValue()).isZero();
			assertThat(client.consumers()).singleElement()
				.satisfies((consumer) -> assertThat(consumer.currentBatchId()).isNull());
		}
		finally {
			process.destroyForcibly();
		}
	}

}
