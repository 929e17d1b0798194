package io.pgque.sample;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/**
 * An order service on a queue in PostgreSQL. To follow an order on its way, read
 * {@link OrderController}, {@link OrderService}, then {@link Billing} and
 * {@link Shipping}.
 */
@SpringBootApplication
public class SampleApplication {

	public static void main(String[] args) {
		SpringApplication.run(SampleApplication.class, args);
	}

}
