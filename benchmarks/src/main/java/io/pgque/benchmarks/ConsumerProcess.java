package io.pgque.benchmarks;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

import io.pgque.annotation.PgqueListener;

/**
 * The process that consumes what another one sends.
 *
 * @since 0.1.0
 */
public final class ConsumerProcess {

	private ConsumerProcess() {
	}

	/**
	 * Consume until the process is ended.
	 * @param arguments the JDBC URL of the database
	 */
	public static void main(String[] arguments) {
		Application.start(new Database(arguments[0]), List.of(Consumer.class));
		Consumer.OUT.println("ready");
	}

	static class Consumer {

		private static final PrintStream OUT = System.out;

		private final List<Long> nanos = new ArrayList<>();

		/**
		 * Called by one thread at a time.
		 */
		@PgqueListener(queue = "latency", consumer = "c")
		void onMessage(String sentAt) {
			if (sentAt.equals("end")) {
				OUT.println("nanos " + this.nanos.stream().map(String::valueOf).collect(Collectors.joining(",")));
				this.nanos.clear();
			}
			else {
				this.nanos.add(System.nanoTime() - Long.parseLong(sentAt));
			}
		}

	}

}
