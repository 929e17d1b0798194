package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueAdmin;

/**
 * Handles a large batch in a JVM of its own, which may have a small heap, and says how
 * many messages came and whether they did in order.
 */
final class LargeBatchMain {

	private static long lastId;

	private static long handled;

	private static long misplaced;

	private LargeBatchMain() {
	}

	public static void main(String[] args) {
		HikariConfig config = new HikariConfig();
		config.setJdbcUrl(args[0]);
		config.setUsername(args[1]);
		config.setPassword(args[1]);
		try (HikariDataSource pool = new HikariDataSource(config)) {
			PgqueMessageListener listener = (message) -> {
				if (message.id() <= lastId) {
					misplaced++;
				}
				lastId = message.id();
				handled++;
			};
			DefaultPgqueMessageListenerContainer container = new DefaultPgqueMessageListenerContainer(
					new ListenerIdentity("test", args[2], ListenerFixture.CONSUMER),
					new PgqueClient(pool, Duration.ofSeconds(30)), new PgqueAdmin(pool, List.of()),
					ListenerFixture.routes(listener), new DefaultPgqueErrorHandler(), new PgqueContainerProperties());
			container.start();
			while (container.getCounters().batchesSettled() == 0) {
				LockSupport.parkNanos(10_000_000);
			}
			container.stop();
		}
		System.out.println("handled " + handled + ", misplaced " + misplaced);
	}

}
