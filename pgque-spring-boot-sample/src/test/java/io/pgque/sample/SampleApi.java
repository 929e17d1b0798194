package io.pgque.sample;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;

import org.springframework.core.ParameterizedTypeReference;
import org.springframework.test.web.servlet.client.RestTestClient;

/**
 * The sample as its HTTP clients see it.
 */
final class SampleApi {

	private final RestTestClient http;

	SampleApi(int port) {
		this.http = RestTestClient.bindToServer().baseUrl("http://localhost:" + port).build();
	}

	RestTestClient http() {
		return this.http;
	}

	Order place(String total) {
		return this.http.post()
			.uri("/orders")
			.body(Map.of("customer", "Ada", "total", new BigDecimal(total)))
			.exchange()
			.expectStatus()
			.isCreated()
			.returnResult(Order.class)
			.getResponseBody();
	}

	Order order(long id) {
		return this.http.get()
			.uri("/orders/{id}", id)
			.exchange()
			.expectStatus()
			.isOk()
			.returnResult(Order.class)
			.getResponseBody();
	}

	void changeCard(long id, String card) {
		this.http.put()
			.uri("/orders/{id}/card", id)
			.body(Map.of("card", card))
			.exchange()
			.expectStatus()
			.isOk()
			.expectBody()
			.jsonPath("$.card")
			.isEqualTo(card);
	}

	List<DeadLetterController.Entry> deadLetters() {
		return this.http.get()
			.uri("/dead-letters")
			.exchange()
			.expectStatus()
			.isOk()
			.returnResult(new ParameterizedTypeReference<List<DeadLetterController.Entry>>() {
			})
			.getResponseBody();
	}

	/**
	 * The dead letters of an order.
	 */
	List<DeadLetterController.Entry> deadLetters(long orderId) {
		return deadLetters().stream()
			.filter((letter) -> letter.payload().contains("\"orderId\":" + orderId + ","))
			.toList();
	}

	void replay(long deadLetterId) {
		this.http.post()
			.uri("/dead-letters/{id}/replay", deadLetterId)
			.exchange()
			.expectStatus()
			.isOk()
			.expectBody()
			.jsonPath("$.id")
			.isEqualTo(deadLetterId);
	}

	void load(int orders) {
		this.http.post()
			.uri("/load?orders={n}", orders)
			.exchange()
			.expectStatus()
			.isAccepted()
			.expectBody()
			.jsonPath("$.orders")
			.isEqualTo(orders)
			.jsonPath("$.declined")
			.isEqualTo(orders / 20);
	}

	StatsController.Stats stats() {
		return this.http.get()
			.uri("/stats")
			.exchange()
			.expectStatus()
			.isOk()
			.returnResult(StatsController.Stats.class)
			.getResponseBody();
	}

}
