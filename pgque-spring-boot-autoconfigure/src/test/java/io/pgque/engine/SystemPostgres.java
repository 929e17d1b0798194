package io.pgque.engine;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import org.postgresql.ds.PGSimpleDataSource;

import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.util.FileSystemUtils;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * A PostgreSQL of the operating system, with an extension that only a system package has;
 * its data are gone when it is closed.
 */
final class SystemPostgres implements AutoCloseable {

	private static final String USER = "postgres";

	private static final boolean ROOT = "root".equals(System.getProperty("user.name"));

	private final Path binaries;

	private final Path data;

	private final int port;

	private SystemPostgres(Path binaries, Path data, int port) {
		this.binaries = binaries;
		this.data = data;
		this.port = port;
	}

	/**
	 * Start the newest server that has an extension.
	 * @param extension such as {@code pg_cron}; its library is loaded at the start
	 * @param settings more of them, as {@code name=value}
	 */
	static SystemPostgres start(String extension, String... settings) throws IOException, InterruptedException {
		Path binaries = binariesWith(extension);
		SystemPostgres server = new SystemPostgres(binaries, Files.createTempDirectory("pgque-system-postgres"),
				freePort());
		try {
			server.start(settings(extension, server.port, settings));
			return server;
		}
		catch (IOException | InterruptedException | RuntimeException | AssertionError ex) {
			FileSystemUtils.deleteRecursively(server.data);
			throw ex;
		}
	}

	private void start(List<String> settings) throws IOException, InterruptedException {
		if (ROOT) {
			// The server refuses to run as root.
			UserPrincipal user = this.data.getFileSystem().getUserPrincipalLookupService().lookupPrincipalByName(USER);
			Files.setOwner(this.data, user);
		}
		run("initdb", "--pgdata=" + this.data, "--username=" + USER, "--auth=trust", "--no-sync", "--encoding=UTF8",
				"--locale=C");
		Files.write(this.data.resolve("postgresql.auto.conf"), settings);
		run("pg_ctl", "--pgdata=" + this.data, "--wait", "start");
	}

	private static List<String> settings(String extension, int port, String... more) {
		return Stream
			.concat(Stream.of("port=" + port, "listen_addresses=localhost", "unix_socket_directories=", "fsync=off",
					"shared_preload_libraries=" + extension), Stream.of(more))
			.map(SystemPostgres::quoted)
			.toList();
	}

	private static String quoted(String setting) {
		int equals = setting.indexOf('=');
		return setting.substring(0, equals) + " = '" + setting.substring(equals + 1) + "'";
	}

	/**
	 * Return a template on the database {@code postgres}, as superuser: a new connection
	 * for each call.
	 */
	JdbcTemplate jdbc() {
		PGSimpleDataSource dataSource = new PGSimpleDataSource();
		dataSource.setUrl("jdbc:postgresql://localhost:" + this.port + "/postgres");
		dataSource.setUser(USER);
		return new JdbcTemplate(dataSource);
	}

	@Override
	public void close() throws IOException, InterruptedException {
		try {
			run("pg_ctl", "--pgdata=" + this.data, "--wait", "--mode=immediate", "stop");
		}
		finally {
			FileSystemUtils.deleteRecursively(this.data);
		}
	}

	/**
	 * The folders of Debian's packages, and that of the pg_config that is found first.
	 */
	private static Path binariesWith(String extension) throws IOException, InterruptedException {
		List<Path> folders = new ArrayList<>();
		Path debian = Path.of("/usr/lib/postgresql");
		if (Files.isDirectory(debian)) {
			try (Stream<Path> versions = Files.list(debian)) {
				versions.map((version) -> version.resolve("bin")).sorted().forEach(folders::add);
			}
		}
		for (String folder : System.getenv().getOrDefault("PATH", "").split(":")) {
			if (Files.isExecutable(Path.of(folder, "pg_config"))) {
				folders.add(0, Path.of(output(List.of(folder + "/pg_config", "--bindir"))));
				break;
			}
		}
		Path found = null;
		for (Path folder : folders) {
			if (Files.isExecutable(folder.resolve("pg_config")) && Files.isExecutable(folder.resolve("initdb"))) {
				Path share = Path.of(output(List.of(folder + "/pg_config", "--sharedir")));
				found = Files.exists(share.resolve("extension/" + extension + ".control")) ? folder : found;
			}
		}
		assertThat(found).as("server with extension %s, among %s", extension, folders).isNotNull();
		return found;
	}

	private static int freePort() throws IOException {
		try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
			return socket.getLocalPort();
		}
	}

	private void run(String program, String... arguments) throws IOException, InterruptedException {
		List<String> command = new ArrayList<>();
		if (ROOT) {
			command.addAll(List.of("runuser", "-u", USER, "--"));
		}
		command.add(this.binaries.resolve(program).toString());
		command.addAll(Arrays.asList(arguments));
		output(command);
	}

	private static String output(List<String> command) throws IOException, InterruptedException {
		// To a file, since a server that was started would keep a pipe open; it has its
		// log there until it is up.
		Path file = Files.createTempFile("pgque-system-postgres", ".out");
		try {
			Process process = new ProcessBuilder(command).directory(file.getParent().toFile())
				.redirectErrorStream(true)
				.redirectOutput(file.toFile())
				.start();
			assertThat(process.waitFor(60, TimeUnit.SECONDS)).as("end of %s", command).isTrue();
			String output = Files.readString(file, StandardCharsets.UTF_8).strip();
			assertThat(process.exitValue()).as("%s says: %s", command, output).isZero();
			return output;
		}
		finally {
			Files.delete(file);
		}
	}

}
