package io.pgque.sample;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.awaitility.Awaitility;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * The sample in a JVM of its own, so that it can be killed.
 */
final class SampleProcess implements AutoCloseable {

	private static final Pattern READY = Pattern.compile("curl -s http://localhost:(\\d+)/dead-letters");

	private final Process process;

	private final Path log;

	private SampleProcess(Process process, Path log) {
		this.process = process;
		this.log = log;
	}

	/**
	 * Start the sample on a free port.
	 * @param log the file its output goes to
	 * @param environment environment variables
	 * @param arguments arguments of the application
	 */
	static SampleProcess start(Path log, Map<String, String> environment, String... arguments) throws IOException {
		List<String> command = new ArrayList<>(
				List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m", "-cp",
						System.getProperty("java.class.path"), SampleApplication.class.getName(), "--server.port=0"));
		command.addAll(List.of(arguments));
		ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
		builder.environment().keySet().removeIf((name) -> name.startsWith("SPRING_"));
		builder.environment().putAll(environment);
		return new SampleProcess(builder.start(), log);
	}

	SampleApi awaitReady() {
		Awaitility.await()
			.atMost(Duration.ofMinutes(2))
			.failFast(() -> assertThat(this.process.isAlive()).as(this::output).isTrue())
			.until(() -> READY.matcher(output()).find());
		Matcher matcher = READY.matcher(output());
		assertThat(matcher.find()).isTrue();
		return new SampleApi(Integer.parseInt(matcher.group(1)));
	}

	String output() {
		try {
			return Files.readString(this.log);
		}
		catch (IOException ex) {
			throw new UncheckedIOException(ex);
		}
	}

	/**
	 * Give the process no chance to do anything any more, as {@code kill -9} does.
	 */
	void kill() throws InterruptedException {
		this.process.destroyForcibly();
		assertThat(this.process.waitFor(10, TimeUnit.SECONDS)).isTrue();
	}

	/**
	 * Ask the process to end, as Ctrl-C does.
	 */
	void stop() throws InterruptedException {
		this.process.destroy();
		assertThat(this.process.waitFor(20, TimeUnit.SECONDS)).as(this::output).isTrue();
	}

	@Override
	public void close() {
		this.process.destroyForcibly();
	}

}
