package io.pgque.boot;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

import io.pgque.annotation.PgqueListener;
import io.pgque.core.PgqueEvent;
import io.pgque.core.PgqueTemplate;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.converter.PayloadUpcaster;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;

import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests for events whose class changes between sender and receiver.
 */
@PgqueDatabase
class EventEvolutionTests {

	private final ApplicationContextRunner runner;

	EventEvolutionTests(TestDatabase database) {
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class, JacksonAutoConfiguration.class,
					PgqueSchemaAutoConfiguration.class, PgqueAutoConfiguration.class,
					PgqueListenerAutoConfiguration.class, PgqueTickerAutoConfiguration.class))
			.withPropertyValues(database.springProperties());
	}

	@Test
	void classesMayBeRenamedAndChanged() {
		this.runner.withBean(Receiver.class).withBean(PayloadUpcaster.class, CustomerUpcaster::new).run((context) -> {
			PgqueTemplate template = context.getBean(PgqueTemplate.class);
			template.send("evolving", new OldName("Ada"));
			template.send("evolving", new Purchase("Bob", 3));
			template.send("evolving", "purchase.made", Map.of("customer", "Cleo", "unknown", List.of(1)));
			template.send("evolving", new Refund(5));
			Receiver receiver = context.getBean(Receiver.class);
			await().until(() -> receiver.received.size() == 4);
			assertThat(receiver.received).containsExactly(new Purchase("Ada", 0), new Purchase("Bob", 3),
					new Purchase("Cleo", 0), new Refund(5));
		});
	}

	/**
	 * The class as it was, in version 1.
	 */
	@PgqueEvent(type = "purchase.made")
	record OldName(String name) {
	}

	@PgqueEvent(type = "purchase.made", version = 2)
	record Purchase(String customer, int items) {
	}

	record Refund(int amount) {
	}

	/**
	 * Messages without a version are of the first, so those that others send in the
	 * newest form without saying so have to stay as they are.
	 */
	static final class CustomerUpcaster implements PayloadUpcaster {

		@Override
		public String type() {
			return "purchase.made";
		}

		@Override
		public int fromVersion() {
			return 1;
		}

		@Override
		public String upcast(String payload, ReceivedMessage message) {
			return payload.replace("\"name\":", "\"customer\":").replace("}", ",\"items\":0}");
		}

	}

	static class Receiver {

		private final List<Object> received = new CopyOnWriteArrayList<>();

		@PgqueListener(queue = "evolving", consumer = "c")
		void onPurchase(Purchase purchase) {
			this.received.add(purchase);
		}

		@PgqueListener(queue = "evolving", consumer = "c")
		void onRefund(Refund refund) {
			this.received.add(refund);
		}

	}

}
