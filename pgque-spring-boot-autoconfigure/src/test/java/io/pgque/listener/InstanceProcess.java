package io.pgque.listener;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * A JVM that runs {@link InstanceMain}, and what can happen to it.
 */
final class InstanceProcess implements AutoCloseable {

	private final String name;

	private final Process process;

	private final Path log;

	private InstanceProcess(String name, Process process, Path log) {
		this.name = name;
		this.process = process;
		this.log = log;
	}

	static InstanceProcess start(TestDatabase database, String queue, ListenerMode mode, int concurrency,
			boolean holdKeys, String name, Path folder) throws IOException {
		return start(database, queue, mode, concurrency, holdKeys, name, folder, Map.of());
	}

	static InstanceProcess start(TestDatabase database, String queue, ListenerMode mode, int concurrency,
			boolean holdKeys, String name, Path folder, Map<String, String> environment) throws IOException {
		Path log = folder.resolve(queue + "-" + name + ".log");
		ProcessBuilder builder = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
				"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"),
				InstanceMain.class.getName(), database.url(), database.user(), queue, mode.name(),
				Integer.toString(concurrency), name, Boolean.toString(holdKeys))
			.redirectErrorStream(true)
			.redirectOutput(log.toFile());
		builder.environment().putAll(environment);
		return new InstanceProcess(name, builder.start(), log);
	}

	String name() {
		return this.name;
	}

	boolean isAlive() {
		return this.process.isAlive();
	}

	/**
	 * Give it no chance to do anything any more.
	 */
	void kill() throws InterruptedException {
		this.process.destroyForcibly();
		assertThat(this.process.waitFor(10, TimeUnit.SECONDS)).isTrue();
	}

	/**
	 * Freeze it until {@link #thaw()}.
	 */
	void freeze() throws Exception {
		signal("STOP");
	}

	void thaw() throws Exception {
		signal("CONT");
	}

	private void signal(String signal) throws Exception {
		Process kill = new ProcessBuilder("kill", "-" + signal, Long.toString(this.process.pid())).start();
		assertThat(kill.waitFor()).isZero();
	}

	/**
	 * Ask it to end.
	 */
	void stop() throws InterruptedException {
		this.process.destroy();
		assertThat(this.process.waitFor(20, TimeUnit.SECONDS)).as(this::output).isTrue();
	}

	String output() {
		try {
			return Files.readString(this.log);
		}
		catch (IOException ex) {
			throw new UncheckedIOException(ex);
		}
	}

	@Override
	public void close() {
		this.process.destroyForcibly();
	}

}
