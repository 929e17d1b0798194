package io.pgque.readme;

import java.time.Duration;
import java.util.List;

import io.pgque.annotation.PgqueHandler;
import io.pgque.annotation.PgqueListener;
import io.pgque.boot.test.AutoConfigurePgque;
import io.pgque.config.PgqueListenerConfigurer;
import io.pgque.config.SimplePgqueListenerEndpoint;
import io.pgque.core.PgqueEvent;
import io.pgque.core.PgqueInbox;
import io.pgque.core.PgqueMessage;
import io.pgque.core.PgqueQueue;
import io.pgque.core.PgqueTemplate;
import io.pgque.core.ReceivedBatch;
import io.pgque.listener.Acknowledgment;
import io.pgque.listener.PgqueBatch;
import io.pgque.listener.PgqueMessageListener;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.converter.PayloadUpcaster;
import io.pgque.support.header.PgqueHeaders;
import io.pgque.test.DrainResult;
import io.pgque.test.PgqueTestOperations;
import org.junit.jupiter.api.Test;

import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.modulith.events.Externalized;
import org.springframework.stereotype.Component;
import org.springframework.transaction.annotation.Transactional;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * The Java of the guides in docs, word by word, so that it compiles.
 */
final class Guides {

	private Guides() {
	}

	record OrderPlaced(long orderId) {
	}

	record Order(long id) {
	}

	record AuditEntry(String text) {
	}

	interface Invoices {

		void open(OrderPlaced event);

		void cancel(String payload, int attempt);

	}

	interface Orders {

		void save(Order order);

	}

	interface Archive {

		boolean add(AuditEntry entry);

		void add(PgqueMessage message);

	}

	interface ExportFile {

		void append(OrderPlaced event);

		boolean isFull();

		void flush();

	}

	record Handlers(Invoices invoices, Archive archive, ExportFile file, PgqueInbox inbox) {

		// begin guide
		@PgqueListener(queue = "orders", consumer = "billing")
		void placed(OrderPlaced event) {
			this.invoices.open(event);
		}

		@PgqueListener(queue = "orders", consumer = "billing", types = "order.cancelled")
		void cancelled(PgqueMessage message, @Header(PgqueHeaders.DELIVERY_ATTEMPT) int attempt) {
			this.invoices.cancel(message.payload(), attempt);
		}
		// end guide

		// begin guide
		@PgqueListener(queue = "audit", consumer = "archiver")
		void archive(List<AuditEntry> entries, PgqueBatch batch) {
			for (int i = 0; i < entries.size(); i++) {
				if (!this.archive.add(entries.get(i))) {
					batch.retry(batch.messages().get(i), Duration.ofMinutes(1), "the archive is full");
				}
			}
		}
		// end guide

		// begin guide
		@PgqueListener(queue = "orders", consumer = "export", ackMode = "manual")
		void export(OrderPlaced event, Acknowledgment acknowledgment) {
			this.file.append(event);
			if (this.file.isFull()) {
				this.file.flush();
				acknowledgment.acknowledge();
			}
		}
		// end guide

		// begin guide
		@Transactional
		@PgqueListener(queue = "orders", consumer = "billing")
		public void charge(OrderPlaced event, PgqueMessage message) {
			if (this.inbox.isNew(message)) {
				this.invoices.open(event);
			}
		}
		// end guide

		// begin guide
		@PgqueListener(queue = "orders", consumer = "billing", mode = "partitioned", partitions = "16",
				concurrency = "4")
		void onOrder(OrderPlaced event) {
			this.invoices.open(event);
		}
		// end guide

	}

	static class ClassLevel {

		// begin guide
		@Component
		@PgqueListener(queue = "orders", consumer = "billing")
		static class Billing {

			private final Invoices invoices;

			Billing(Invoices invoices) {
				this.invoices = invoices;
			}

			@PgqueHandler
			void placed(OrderPlaced event) {
				this.invoices.open(event);
			}

			@PgqueHandler("order.cancelled")
			void cancelled(PgqueMessage message) {
				this.invoices.cancel(message.payload(), message.deliveryAttempt());
			}

		}
		// end guide

	}

	static class Configuration {

		// begin guide
		@Bean
		PgqueListenerConfigurer archive(Archive archive) {
			return (registrar) -> {
				var endpoint = new SimplePgqueListenerEndpoint("orders", (PgqueMessageListener) archive::add);
				endpoint.setConsumer("archive");
				registrar.registerEndpoint(endpoint);
			};
		}
		// end guide

		// begin guide
		@Bean
		PgqueQueue orders() {
			return PgqueQueue.named("orders").maxRetries(8).build();
		}
		// end guide

	}

	record Sending(PgqueTemplate pgque) {

		void send() {
			// begin guide
			this.pgque.send("orders",
					(message) -> message.payload(new OrderPlaced(7))
						.type("order.placed")
						.key("customer-3")
						.header("tenant", "north"));
			// end guide
		}

	}

	record Publishing(PgqueTemplate pgque) {

		// begin guide
		@PgqueEvent(queue = "orders", type = "order.placed")
		record OrderPlaced(long orderId) {
		}

		@Transactional
		public void place(List<Order> orders) {
			orders.forEach((order) -> this.pgque.publish(new OrderPlaced(order.id())));
		}
		// end guide

	}

	record ApplicationEvents(Orders orders, ApplicationEventPublisher events) {

		// begin guide
		@Transactional
		public void place(Order order) {
			this.orders.save(order);
			this.events.publishEvent(new OrderPlaced(order.id()));
		}
		// end guide

	}

	static class Modules {

		// begin guide
		@Externalized("orders::#{customer}")
		record OrderPlaced(long orderId, String customer) {
		}
		// end guide

	}

	static class Versions {

		// begin guide
		@PgqueEvent(type = "order.placed", version = 2)
		record OrderPlaced(long orderId, String customer) {
		}

		@Component
		static class NameBecameCustomer implements PayloadUpcaster {

			@Override
			public String type() {
				return "order.placed";
			}

			@Override
			public int fromVersion() {
				return 1;
			}

			@Override
			public String upcast(String payload, ReceivedMessage message) {
				return payload.replace("\"name\":", "\"customer\":");
			}

		}
		// end guide

	}

	static class Testing {

		// begin guide
		@SpringBootTest(webEnvironment = WebEnvironment.NONE)
		@AutoConfigurePgque
		static class BillingTests {

			@Autowired
			PgqueTestOperations pgque;

			@Test
			void declinedCardIsTriedAgain() {
				this.pgque.send("orders", new OrderPlaced(7));
				assertThat(this.pgque.drain("orders.billing")).isEqualTo(new DrainResult(0, 0, 1, 0));
				this.pgque.retriesDue("orders");
				assertThat(this.pgque.drain("orders.billing").handled()).isEqualTo(1);
			}

		}
		// end guide

	}

	interface Report {

		void add(PgqueMessage message);

	}

	record Reporting(PgqueTemplate pgque, Report report) {

		void run() {
			// begin guide
			try (ReceivedBatch batch = this.pgque.receive("orders", "report")) {
				for (PgqueMessage message : batch) {
					this.report.add(message);
				}
			}
			// end guide
		}

	}

}
