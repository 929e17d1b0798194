package io.pgque.sample;

import io.pgque.core.PgqueQueue;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * The queue between the one who places orders and those who work on them.
 */
@Configuration(proxyBeanMethods = false)
class OrdersQueue {

	static final String NAME = "orders";

	/**
	 * A queue that a listener names is created anyway. We declare it to say how often a
	 * consumer gets an event again before the event becomes a dead letter.
	 */
	@Bean
	PgqueQueue orders() {
		return PgqueQueue.named(NAME).maxRetries(2).build();
	}

}
