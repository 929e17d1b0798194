package io.pgque.listener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueAdmin;
import org.postgresql.ds.PGSimpleDataSource;

import org.springframework.jdbc.core.JdbcTemplate;

/**
 * An instance of an application in a JVM of its own. Its handler notes in the database
 * when it begins and ends. If keys are to be held back, some first attempts fail.
 */
final class InstanceMain {

	static final Duration LEASE = Duration.ofSeconds(2);

	static final int PAGE_SIZE = 50;

	static final int PARTITIONS = 8;

	private static final BackOffSettings BACK_OFF = new BackOffSettings(Duration.ofMillis(50), 1, Duration.ofMillis(50),
			Duration.ofMillis(49));

	private InstanceMain() {
	}

	public static void main(String[] args) throws InterruptedException {
		PGSimpleDataSource dataSource = new PGSimpleDataSource();
		dataSource.setUrl(args[0]);
		dataSource.setUser(args[1]);
		dataSource.setPassword(args[1]);
		PgqueContainerProperties properties = new PgqueContainerProperties();
		properties.setMode(ListenerMode.valueOf(args[3]));
		properties.setConcurrency(Integer.parseInt(args[4]));
		properties.setPartitions(PARTITIONS);
		properties.setLeaseDuration(LEASE);
		properties.setDeadInterval(LEASE);
		properties.setPageSize(PAGE_SIZE);
		properties.setHoldFailedKeys(Boolean.parseBoolean(args[6]));
		run(dataSource, args[2], args[5], properties);
		// Until it is told to end, or killed.
		new CountDownLatch(1).await();
	}

	private static void run(PGSimpleDataSource dataSource, String queue, String instance,
			PgqueContainerProperties properties) {
		HikariConfig config = new HikariConfig();
		config.setDataSource(dataSource);
		config.setMaximumPoolSize(properties.getConcurrency() + 2);
		HikariDataSource pool = new HikariDataSource(config);
		JdbcTemplate jdbc = new JdbcTemplate(pool);
		PgqueClient client = new PgqueClient(pool, Duration.ofSeconds(30));
		WakeupListener wakeups = new WakeupListener(dataSource);
		InstanceHeartbeat heartbeat = new InstanceHeartbeat(client, dataSource);
		PgqueMessageListener listener = (message) -> {
			if (properties.isHoldFailedKeys() && message.id() % 7 == 0 && message.deliveryAttempt() == 1) {
				throw new IllegalStateException("first attempt");
			}
			Long number = jdbc.queryForObject(
					"insert into handling (event, key, instance) values (?, ?, ?) returning hno", Long.class,
					message.id(), message.extra1(), instance);
			LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
			jdbc.update("update handling set finished = clock_timestamp() where hno = ?", number);
		};
		DefaultPgqueMessageListenerContainer container = new DefaultPgqueMessageListenerContainer(
				new ListenerIdentity("test", queue, ListenerFixture.CONSUMER), client, new PgqueAdmin(pool, List.of()),
				ListenerFixture.routes(listener), new DefaultPgqueErrorHandler(BACK_OFF), properties);
		container.setWakeupListener(wakeups);
		container.setInstanceHeartbeat(heartbeat);
		container.subscribe();
		container.start();
		Runtime.getRuntime().addShutdownHook(new Thread(() -> {
			container.stop();
			heartbeat.destroy();
			wakeups.destroy();
			pool.close();
		}));
	}

}
