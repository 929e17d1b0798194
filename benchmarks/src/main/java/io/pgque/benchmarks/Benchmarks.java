package io.pgque.benchmarks;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Runs the benchmarks named by its arguments, {@code engine} for all of the log engine's,
 * {@code application} for those of Spring Boot applications, and prints a table.
 * {@code --rounds=n} sets how often each cell is measured (5), the system property
 * {@code benchmarks.url} names a database to use instead of an embedded one.
 *
 * @since 0.1.0
 */
public final class Benchmarks {

	private Benchmarks() {
	}

	/**
	 * Run benchmarks.
	 * @param arguments names of benchmarks or groups, and options
	 */
	public static void main(String[] arguments) throws Exception {
		Map<String, List<Benchmark>> groups = new TreeMap<>();
		groups.put("engine", List.of(new SendBenchmark(), new ReceiveBenchmark(), new LargeBatchBenchmark(),
				new SettleBenchmark(), new CatchUpBenchmark(), new HeldSnapshotBenchmark(), new IdleQueuesBenchmark()));
		groups.put("application", List.of(new LatencyBenchmark(), new IdleApplicationBenchmark(),
				new TransactionBenchmark(), new DrainBenchmark()));
		List.copyOf(groups.values())
			.forEach((group) -> group.forEach((benchmark) -> groups.put(benchmark.name(), List.of(benchmark))));

		int rounds = 5;
		Report report = new Report();
		try (Server server = Server.start()) {
			for (String argument : arguments) {
				if (argument.startsWith("--rounds=")) {
					rounds = Integer.parseInt(argument.substring("--rounds=".length()));
					continue;
				}
				List<Benchmark> group = groups.get(argument);
				if (group == null) {
					throw new IllegalArgumentException("No benchmark '" + argument + "'; there are " + groups.keySet());
				}
				for (Benchmark benchmark : group) {
					benchmark.run(server, rounds, report);
				}
			}
			report.print(server.version());
			report.write(Path.of("target", "benchmarks.json"), server.version());
		}
	}

}
