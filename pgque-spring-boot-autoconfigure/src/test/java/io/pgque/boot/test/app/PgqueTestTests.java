package io.pgque.boot.test.app;

import java.time.Duration;

import io.pgque.boot.test.PgqueTest;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.listener.PgqueMessageListenerContainer;
import io.pgque.test.DrainResult;
import io.pgque.test.PgqueListenerTestHarness;
import io.pgque.test.PgqueTestOperations;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.ApplicationContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/**
 * Tests for {@link PgqueTest} and what it gives to tests.
 */
@PgqueDatabase(migrated = false)
@PgqueTest(listeners = Billing.class, properties = "spring.application.name=tested")
class PgqueTestTests {

	static TestDatabase database;

	private final PgqueTestOperations pgque;

	private final Billing billing;

	private final PgqueListenerTestHarness harness;

	PgqueTestTests(@Autowired PgqueTestOperations pgque, @Autowired Billing billing,
			@Autowired PgqueListenerTestHarness harness) {
		this.pgque = pgque;
		this.billing = billing;
		this.harness = harness;
	}

	@DynamicPropertySource
	static void properties(DynamicPropertyRegistry registry) {
		registry.add("spring.datasource.url", () -> database.url());
		registry.add("spring.datasource.username", () -> database.user());
		registry.add("spring.datasource.password", () -> database.password());
	}

	@BeforeEach
	void clear() {
		this.pgque.drainAll();
		this.billing.charged.clear();
		this.harness.clear();
	}

	@Test
	void onlyTheListenersAndWhatBelongsToThemAreThere(@Autowired ApplicationContext context) {
		assertThat(context.getBeansOfType(Billing.class)).hasSize(1);
		assertThat(context.getBeansOfType(Patience.class)).hasSize(1);
		assertThat(context.getBeansOfType(Shipping.class)).isEmpty();
		assertThat(context.getBeansOfType(Warehouse.class)).isEmpty();
		assertThat(context.getEnvironment().getProperty("spring.application.name")).isEqualTo("tested");
		assertThat(Thread.getAllStackTraces().keySet())
			.noneMatch((thread) -> thread.getName().startsWith("pgque-orders"));
	}

	@Test
	void handlersRunOnTheThreadOfTheTestUntilNothingIsLeft() {
		this.pgque.send("orders", new Order(1));
		this.pgque.send("orders", "Order", new Order(207));
		this.pgque.send("orders", (spec) -> spec.type("other").payload("skipped"));
		assertThat(this.pgque.drain("orders.billing")).isEqualTo(new DrainResult(4, 1, 0, 0));
		String thread = " on " + Thread.currentThread().getName();
		assertThat(this.billing.charged).containsExactly("1" + thread, "207" + thread, "107" + thread, "7" + thread);
		assertThat(this.pgque.drainAll().handled()).isEqualTo(4);
		assertThat(this.billing.charged).endsWith("printed 4");
		assertThat(this.pgque.drainAll().total()).isZero();
	}

	@Test
	void retriesAndDeadLetters() {
		this.pgque.send("orders", new Order(-5));
		this.pgque.send("orders", new Order(0));
		assertThat(this.pgque.drain("orders.billing")).isEqualTo(new DrainResult(0, 0, 1, 1));
		assertThat(this.pgque.deadLetters("orders")).singleElement()
			.satisfies((dead) -> assertThat(dead.reason()).isEqualTo("no such order"));
		int deliveries = 1;
		while (this.pgque.retriesDue("orders") > 0) {
			assertThat(this.pgque.drain("orders.billing").total()).isOne();
			deliveries++;
		}
		assertThat(deliveries).isEqualTo(6);
		assertThat(this.pgque.deadLetters("orders")).hasSize(2);
		assertThat(this.harness.getInvocations("orders", "billing")).hasSize(7)
			.allSatisfy((invocation) -> assertThat(invocation.failure()).isNotNull());
		assertThat(this.harness.getInvocations().get(6).message().deliveryAttempt()).isEqualTo(6);
	}

	@Test
	void harnessRecordsCallsOfAllKinds() {
		this.pgque.send("orders", new Order(3));
		this.pgque.send("orders", new Order(4));
		this.pgque.drainAll();
		assertThat(this.harness.getInvocations("receipts", "printing")).singleElement().satisfies((invocation) -> {
			assertThat(invocation.messages()).hasSize(2);
			assertThat(invocation.failure()).isNull();
		});
		assertThat(this.harness.awaitInvocations("orders", "billing", 2, Duration.ZERO)).hasSize(2);
		assertThatIllegalStateException()
			.isThrownBy(() -> this.harness.awaitInvocations("orders", "billing", 3, Duration.ofMillis(1)))
			.withMessageContaining("Expected 3 calls")
			.withMessageContaining("there were 2");
	}

	@Test
	void whatCannotWorkSaysWhy(@Autowired PgqueListenerEndpointRegistry registry,
			@Autowired PlatformTransactionManager transactions) {
		assertThatIllegalArgumentException().isThrownBy(() -> this.pgque.drain("nobody"))
			.withMessageContaining("orders.billing");
		assertThatIllegalStateException()
			.isThrownBy(
					() -> new TransactionTemplate(transactions).executeWithoutResult((status) -> this.pgque.drainAll()))
			.withMessageContaining("transaction around this test");
		PgqueMessageListenerContainer container = registry.getListenerContainer("orders.billing");
		container.start();
		try {
			assertThatIllegalStateException().isThrownBy(() -> this.pgque.drain("orders.billing"))
				.withMessageContaining("is running");
		}
		finally {
			container.stop();
		}
		this.pgque.send("orders", new Order(9));
		assertThat(this.pgque.drain("orders.billing").handled()).isOne();
	}

}
