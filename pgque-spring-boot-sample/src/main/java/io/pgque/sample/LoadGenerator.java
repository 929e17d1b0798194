package io.pgque.sample;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.task.AsyncTaskExecutor;
import org.springframework.stereotype.Component;

/**
 * Places many orders, one after another, each in a transaction of its own.
 */
@Component
class LoadGenerator {

	/** Of this many orders, one has a card that is declined: 5 %. */
	static final int DECLINED_EVERY = 20;

	private static final Logger logger = LoggerFactory.getLogger(LoadGenerator.class);

	private final OrderService orders;

	private final AsyncTaskExecutor executor;

	private volatile boolean stopping;

	LoadGenerator(OrderService orders, @Qualifier("applicationTaskExecutor") AsyncTaskExecutor executor) {
		this.orders = orders;
		this.executor = executor;
	}

	/**
	 * Start in the background.
	 */
	void start(int count) {
		this.executor.execute(() -> run(count));
	}

	/**
	 * Ctrl-C doesn't wait for the rest of a load.
	 */
	@EventListener(ContextClosedEvent.class)
	void stop() {
		this.stopping = true;
	}

	private void run(int count) {
		Instant begin = Instant.now();
		int placed = 0;
		try {
			while (placed < count && !this.stopping) {
				placed++;
				this.orders.place("Customer " + placed, total(placed));
				if (placed % Math.max(1, count / 10) == 0) {
					logger.info("Load: {} of {} orders placed", placed, count);
				}
			}
		}
		catch (RuntimeException ex) {
			logger.error("Load: failed at order {} of {}", placed, count, ex);
			return;
		}
		logger.info("Load: {} after {} of {} orders and {} ms", (placed < count) ? "stopped" : "done", placed, count,
				Duration.between(begin, Instant.now()).toMillis());
	}

	/**
	 * The same totals in every run: 10.50, 11.50, … and every twentieth ends in .13.
	 */
	private static BigDecimal total(int number) {
		String cents = (number % DECLINED_EVERY == 0) ? ".13" : ".50";
		return new BigDecimal(9 + (number % 90 + 1) + cents);
	}

}
