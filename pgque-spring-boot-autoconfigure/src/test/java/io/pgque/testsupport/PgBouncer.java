package io.pgque.testsupport;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.awaitility.Awaitility;

/**
 * A PgBouncer of the operating system in front of the shared server, in transaction mode
 * and with few connections, so that consecutive transactions of a client meet different
 * ones. It ends with this JVM.
 */
public final class PgBouncer {

	private static PgBouncer shared;

	private final int port;

	private PgBouncer(int port) {
		this.port = port;
	}

	/**
	 * Return the pooler of this JVM, starting it if need be.
	 */
	public static synchronized PgBouncer shared() {
		if (shared == null) {
			shared = start(PostgresServer.shared());
		}
		return shared;
	}

	/**
	 * Return the JDBC URL of a database through the pooler, with the settings of the
	 * driver as they are.
	 */
	public String url(TestDatabase database) {
		return url(database.name());
	}

	String url(String database) {
		return "jdbc:postgresql://localhost:" + this.port + "/" + database;
	}

	private static PgBouncer start(PostgresServer server) {
		try {
			int port = freePort();
			// Readable by the user that it runs as.
			Path folder = Files.createTempDirectory("pgque-pgbouncer",
					PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
			Path users = Files.writeString(folder.resolve("users.txt"),
					"\"%1$s\" \"%1$s\"%n".formatted(server.superuser()));
			Path settings = Files.writeString(folder.resolve("pgbouncer.ini"), """
					[databases]
					* = host=localhost port=%d connect_query='select 1'
					[pgbouncer]
					listen_addr = localhost
					listen_port = %d
					unix_socket_dir =
					auth_type = trust
					auth_file = %s
					pool_mode = transaction
					default_pool_size = 3
					max_client_conn = 1000
					server_round_robin = 1
					ignore_startup_parameters = extra_float_digits
					""".formatted(server.port(), port, users));
			List<String> command = new ArrayList<>(List.of("pgbouncer", settings.toString()));
			if ("root".equals(System.getProperty("user.name"))) {
				// It refuses to run as root.
				command.addAll(1, List.of("-u", "postgres"));
			}
			File log = folder.resolve("log").toFile();
			Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log).start();
			Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
			Awaitility.await("PgBouncer, see " + log).atMost(Duration.ofSeconds(10)).until(() -> isListening(port));
			return new PgBouncer(port);
		}
		catch (IOException ex) {
			throw new UncheckedIOException("PgBouncer did not start; Debian's package is pgbouncer", ex);
		}
	}

	private static int freePort() throws IOException {
		try (ServerSocket socket = new ServerSocket(0)) {
			return socket.getLocalPort();
		}
	}

	private static boolean isListening(int port) throws IOException {
		try (Socket socket = new Socket()) {
			socket.connect(new InetSocketAddress("localhost", port), 1000);
			return true;
		}
		catch (java.net.ConnectException ex) {
			return false;
		}
	}

}
