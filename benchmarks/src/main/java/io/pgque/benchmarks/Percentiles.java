package io.pgque.benchmarks;

import java.util.Arrays;
import java.util.Collection;

/**
 * Percentiles of durations in milliseconds.
 */
record Percentiles(double[] sorted) {

	static Percentiles ofNanos(Collection<Long> nanos) {
		double[] millis = nanos.stream().mapToDouble((value) -> value / 1e6).sorted().toArray();
		return new Percentiles(millis);
	}

	static Percentiles ofMillis(double... millis) {
		double[] sorted = millis.clone();
		Arrays.sort(sorted);
		return new Percentiles(sorted);
	}

	/**
	 * Return the value that a share of all don't exceed; NaN when there are none.
	 */
	double at(double share) {
		return (this.sorted.length == 0) ? Double.NaN
				: this.sorted[(int) Math.min(this.sorted.length - 1, Math.ceil(share * this.sorted.length) - 1)];
	}

	double median() {
		return at(0.5);
	}

	int count() {
		return this.sorted.length;
	}

}
