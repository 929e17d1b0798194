package io.pgque.benchmarks;

import java.util.ArrayList;
import java.util.List;

/**
 * Cells that take turns, so that a machine whose speed drifts treats them alike.
 */
final class Cells {

	/**
	 * One measurement.
	 */
	@FunctionalInterface
	interface Cell {

		double measure() throws Exception;

	}

	private Cells() {
	}

	/**
	 * Measure cells in turn, after one round that does not count.
	 * @return the median of each
	 */
	static double[] medians(int rounds, Cell... cells) throws Exception {
		List<List<Double>> values = new ArrayList<>();
		for (Cell cell : cells) {
			cell.measure();
			values.add(new ArrayList<>());
		}
		for (int round = 0; round < rounds; round++) {
			for (int i = 0; i < cells.length; i++) {
				values.get(i).add(cells[i].measure());
			}
		}
		return values.stream().mapToDouble(Cells::median).toArray();
	}

	static double median(List<Double> values) {
		List<Double> sorted = values.stream().sorted().toList();
		int middle = sorted.size() / 2;
		return (sorted.size() % 2 == 1) ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
	}

}
