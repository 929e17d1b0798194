package io.pgque.readme;

import io.pgque.annotation.PgqueListener;
import io.pgque.core.PgqueTemplate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/**
 * The application of README's quick start, word by word.
 */
@SpringBootConfiguration
@EnableAutoConfiguration
@Import({ QuickStart.Checkout.class, QuickStart.Billing.class })
class QuickStart {

	record OrderPlaced(long orderId) {
	}

	@Service
	static class Checkout {

		private final JdbcClient jdbc;

		private final PgqueTemplate pgque;

		Checkout(JdbcClient jdbc, PgqueTemplate pgque) {
			this.jdbc = jdbc;
			this.pgque = pgque;
		}

		// begin README
		@Transactional
		public void place(long orderId) {
			this.jdbc.sql("insert into orders (id) values (?)").param(orderId).update();
			this.pgque.send("orders", new OrderPlaced(orderId));
		}
		// end README

	}

	@Component
	static class Billing {

		private static final Logger logger = LoggerFactory.getLogger(Billing.class);

		// begin README
		@PgqueListener(queue = "orders", consumer = "billing")
		void charge(OrderPlaced event) {
			logger.info("Charging order {}", event.orderId());
		}
		// end README

	}

}
