package io.pgque.benchmarks;

/**
 * Something that is measured against a baseline in the same run.
 */
interface Benchmark {

	/**
	 * Name to call it by on the command line.
	 */
	String name();

	/**
	 * Measure.
	 * @param server where; each benchmark installs what it needs in a fresh database
	 * @param rounds how often each cell is measured, cells taking turns
	 * @param report where the figures go
	 */
	void run(Server server, int rounds, Report report) throws Exception;

}
