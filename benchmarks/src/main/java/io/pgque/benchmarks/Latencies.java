package io.pgque.benchmarks;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

import io.pgque.annotation.PgqueListener;

/**
 * Notes how long messages took.
 */
class Latencies {

	final Queue<Long> nanos = new ConcurrentLinkedQueue<>();

	@PgqueListener(queue = "latency", consumer = "c")
	void onMessage(String sentAt) {
		this.nanos.add(System.nanoTime() - Long.parseLong(sentAt));
	}

}
