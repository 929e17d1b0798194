package io.pgque.benchmarks;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * The figures of a run.
 */
final class Report {

	private static final String NO_TARGET = "-";

	private final PrintStream out = System.out;

	private final List<Figure> figures = new ArrayList<>();

	/**
	 * A figure.
	 *
	 * @param what what was measured
	 * @param ours our value
	 * @param baseline the value it is compared with; NaN if it stands alone
	 * @param unit unit of both
	 * @param figure the ratio, or our value if it stands alone
	 * @param target what is to be reached, if anything
	 * @param reached whether it was
	 */
	record Figure(String what, double ours, double baseline, String unit, double figure, String target,
			boolean reached) {
	}

	/**
	 * Add a rate, to be at least a share of the baseline's.
	 */
	void rate(String what, double ours, double baseline, String unit, double atLeast) {
		add(new Figure(what, ours, baseline, unit, ours / baseline, ">= " + atLeast, ours / baseline >= atLeast));
	}

	/**
	 * Add a duration, to be at most a multiple of the baseline's.
	 */
	void duration(String what, double ours, double baseline, String unit, double atMost) {
		add(new Figure(what, ours, baseline, unit, ours / baseline, "<= " + atMost, ours / baseline <= atMost));
	}

	/**
	 * Add a duration that is compared, and has no target.
	 */
	void duration(String what, double ours, double baseline, String unit) {
		add(new Figure(what, ours, baseline, unit, ours / baseline, NO_TARGET, true));
	}

	/**
	 * Add a duration that has a limit of its own.
	 */
	void limit(String what, double ours, String unit, double atMost) {
		add(new Figure(what, ours, Double.NaN, unit, ours, "<= " + atMost, ours <= atMost));
	}

	private void add(Figure figure) {
		this.figures.add(figure);
		this.out.println(line(figure));
	}

	private static String line(Figure figure) {
		String verdict = figure.target().equals(NO_TARGET) ? "" : figure.reached() ? "reached" : "MISSED";
		return "%-62s %12.2f %12.2f %-8s %8.2f  %-9s %s".formatted(figure.what(), figure.ours(), figure.baseline(),
				figure.unit(), figure.figure(), figure.target(), verdict);
	}

	void print(String server) {
		this.out.println();
		this.out.println("PostgreSQL " + server);
		this.out.println(
				"%-62s %12s %12s %-8s %8s  %-9s".formatted("what", "ours", "baseline", "unit", "figure", "target"));
		this.figures.forEach((figure) -> this.out.println(line(figure)));
	}

	void write(Path file, String server) throws IOException {
		List<Map<String, Object>> rows = new ArrayList<>();
		for (Figure figure : this.figures) {
			Map<String, Object> row = new LinkedHashMap<>();
			row.put("what", figure.what());
			row.put("ours", figure.ours());
			if (!Double.isNaN(figure.baseline())) {
				row.put("baseline", figure.baseline());
			}
			row.put("unit", figure.unit());
			row.put("figure", figure.figure());
			row.put("target", figure.target());
			row.put("reached", figure.reached());
			rows.add(row);
		}
		Files.createDirectories(file.toAbsolutePath().getParent());
		new ObjectMapper().writerWithDefaultPrettyPrinter()
			.writeValue(file.toFile(), Map.of("postgresql", server, "figures", rows));
	}

}
