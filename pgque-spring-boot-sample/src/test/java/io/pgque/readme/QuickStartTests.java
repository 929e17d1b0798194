package io.pgque.readme;

import java.time.Duration;

import io.pgque.testsupport.TestPostgres;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/**
 * README's quick start, in an application that has nothing else.
 */
@SpringBootTest(classes = QuickStart.class, webEnvironment = WebEnvironment.NONE,
		properties = "spring.flyway.enabled=false")
@ExtendWith(OutputCaptureExtension.class)
class QuickStartTests {

	@Autowired
	private QuickStart.Checkout checkout;

	@DynamicPropertySource
	static void database(DynamicPropertyRegistry properties) {
		TestPostgres database = TestPostgres.database("quick_start");
		database.jdbc().sql("create table orders (id bigint primary key)").update();
		properties.add("spring.datasource.url", database::url);
		properties.add("spring.datasource.username", database::user);
	}

	@Test
	void listenerHearsOfTheOrder(CapturedOutput output) {
		this.checkout.place(42);
		Awaitility.await()
			.atMost(Duration.ofMinutes(1))
			.until(output::toString, (text) -> text.contains("Charging order 42"));
	}

}
