package io.pgque.sample;

import java.time.Duration;
import java.util.List;

import io.pgque.core.DeadLetter;
import io.pgque.core.PgqueAdminOperations;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.jdbc.core.simple.JdbcClient;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * What the sample does, over HTTP. It runs on the PostgreSQL that it starts itself.
 */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class OrderServiceTests {

	private static final Duration LONG_ENOUGH = Duration.ofMinutes(1);

	@LocalServerPort
	private int port;

	@Autowired
	private JdbcClient jdbc;

	@Autowired
	private PgqueAdminOperations pgque;

	private SampleApi api;

	@BeforeEach
	void connect() {
		this.api = new SampleApi(this.port);
	}

	@Test
	void bothConsumersHandleAnOrderOnce() {
		Order placed = this.api.place("42.50");
		assertThat(placed.customer()).isEqualTo("Ada");
		assertThat(placed.total()).isEqualByComparingTo("42.50");
		assertThat(placed.state()).isEqualTo(OrderState.PLACED);
		awaitState(placed, OrderState.COMPLETED);
		Order completed = this.api.order(placed.id());
		assertThat(completed.timesBilled()).isOne();
		assertThat(completed.timesShipped()).isOne();
	}

	@Test
	void placingAnswersWhereTheOrderIs() {
		this.api.http()
			.post()
			.uri("/orders")
			.contentType(MediaType.APPLICATION_JSON)
			.body("{\"customer\":\"Grace\",\"total\":7}")
			.exchange()
			.expectStatus()
			.isCreated()
			.expectHeader()
			.valueMatches(HttpHeaders.LOCATION, "/orders/\\d+")
			.expectBody()
			.jsonPath("$.customer")
			.isEqualTo("Grace")
			.jsonPath("$.state")
			.isEqualTo("PLACED");
	}

	@Test
	void declinedCardIsRetriedThenADeadLetterThenReplayed() {
		Order order = this.api.place("99.13");
		DeadLetterController.Entry letter = awaitDeadLetter(order);
		assertThat(letter.queue()).isEqualTo("orders");
		assertThat(letter.consumer()).isEqualTo("billing");
		assertThat(letter.reason()).contains("Card declined: order " + order.id() + ", total 99.13");
		assertThat(letter.payload()).isEqualTo("{\"orderId\":%d,\"customer\":\"Ada\",\"total\":99.13}", order.id());
		DeadLetter details = this.pgque.deadLetters()
			.inspect("orders", 1000)
			.stream()
			.filter((candidate) -> candidate.id() == letter.id())
			.findFirst()
			.orElseThrow();
		assertThat(details.deliveryAttempt()).as("the first delivery and two retries").isEqualTo(3);
		assertThat(Duration.between(details.createdAt(), details.deadAt())).as("1 s and 2 s of back-off")
			.isGreaterThanOrEqualTo(Duration.ofSeconds(3));

		// Shipping has not noticed.
		assertThat(this.api.order(order.id()).state()).isEqualTo(OrderState.SHIPPED);

		this.api.changeCard(order.id(), "another card");
		this.api.replay(letter.id());
		awaitState(order, OrderState.COMPLETED);
		Order completed = this.api.order(order.id());
		assertThat(completed.timesBilled()).isOne();
		assertThat(completed.timesShipped()).as("a replay is for the consumer that failed").isOne();
		assertThat(this.api.deadLetters(order.id())).isEmpty();
	}

	@Test
	void replayWithoutANewCardFailsAgain() {
		Order order = this.api.place("3.13");
		DeadLetterController.Entry first = awaitDeadLetter(order);
		this.api.replay(first.id());
		assertThat(this.api.deadLetters(order.id())).extracting(DeadLetterController.Entry::id)
			.doesNotContain(first.id());
		assertThat(awaitDeadLetter(order).id()).isNotEqualTo(first.id());
	}

	@Test
	void refusedOrderLeavesNothingBehind() {
		long ordersBefore = orders();
		this.api.http()
			.post()
			.uri("/orders")
			.contentType(MediaType.APPLICATION_JSON)
			.body("{\"customer\":\"Midas\",\"total\":10000.01}")
			.exchange()
			.expectStatus()
			.isEqualTo(HttpStatus.UNPROCESSABLE_CONTENT)
			.expectHeader()
			.contentType(MediaType.APPLICATION_PROBLEM_JSON)
			.expectBody()
			.jsonPath("$.detail")
			.isEqualTo("An order of 10000.01 is above the limit of 10000");
		assertThat(orders()).isEqualTo(ordersBefore);

		// A consumer gets events in the order of their ids: when a later one is done, the
		// refused one isn't coming any more. An event without an order would have become
		// a dead letter or be waiting for a retry.
		awaitState(this.api.place("1.00"), OrderState.COMPLETED);
		assertThat(this.jdbc.sql("select count(*) from pgque.retry_queue where ev_data like '%Midas%'")
			.query(Long.class)
			.single()).isZero();
		assertThat(this.api.deadLetters()).noneMatch((letter) -> letter.payload().contains("Midas"));
	}

	@Test
	void orderAtTheLimitIsFine() {
		awaitState(this.api.place("10000"), OrderState.COMPLETED);
	}

	@Test
	void statsCountEverything() {
		awaitState(this.api.place("5.00"), OrderState.COMPLETED);
		StatsController.Stats stats = this.api.stats();
		assertThat(stats.orders()).containsOnlyKeys(OrderState.values());
		assertThat(stats.orders().get(OrderState.COMPLETED)).isPositive();
		assertThat(stats.handled().billing())
			.isEqualTo(stats.orders().get(OrderState.COMPLETED) + stats.orders().get(OrderState.PAID));
		assertThat(stats.handled().shipping())
			.isEqualTo(stats.orders().get(OrderState.COMPLETED) + stats.orders().get(OrderState.SHIPPED));
		assertThat(stats.deadLetters()).isEqualTo(this.api.deadLetters().size());
	}

	@ParameterizedTest
	@CsvSource(delimiter = '|', quoteCharacter = '`',
			textBlock = """
					GET  | /orders/987654321             |                                     | 404 | There is no order 987654321
					PUT  | /orders/987654321/card        | {"card":"new"}                      | 404 | There is no order 987654321
					POST | /dead-letters/987654321/replay|                                     | 404 | There is no dead letter 987654321
					GET  | /orders/abc                   |                                     | 400 | Failed to convert 'id' with value: 'abc'
					POST | /orders                       | {"total":1}                         | 400 | customer must not be blank
					POST | /orders                       | {"customer":" ","total":1}          | 400 | customer must not be blank
					POST | /orders                       | {"customer":"A\\u0000","total":1}   | 400 | customer must be text without control characters
					POST | /orders                       | {"customer":"\\ud800","total":1}    | 400 | customer must be text without control characters
					POST | /orders                       | {"customer":"A"}                    | 400 | total must not be null
					POST | /orders                       | {"customer":"A","total":0}          | 400 | total must be greater than 0
					POST | /orders                       | {"customer":"A","total":0.001}      | 400 | total must have at most two decimals
					POST | /orders                       | {"customer":"A","total":1e999999}   | 400 | total must be less than or equal to 1000000000
					POST | /orders                       | {"customer":"A","total":1e2147483647}| 400 | total must be less than or equal to 1000000000
					POST | /orders                       | {"customer":"A","total":"much"}     | 400 | BigDecimal
					POST | /orders                       | {"customer"                         | 400 | Unexpected end-of-input
					POST | /orders                       |                                     | 400 | The request needs a body
					PUT  | /orders/1/card                | {}                                  | 400 | card must not be blank
					POST | /load                         |                                     | 400 | Required parameter 'orders' is not present
					POST | /load?orders=0                |                                     | 400 | orders must be greater than or equal to 1
					POST | /load?orders=many             |                                     | 400 | Failed to convert 'orders' with value: 'many'
					GET  | /dead-letters?limit=0         |                                     | 400 | limit must be greater than or equal to 1
					""")
	void badRequestsAreToldWhatIsWrong(String method, String uri, String body, int status, String detail) {
		var request = this.api.http()
			.method(HttpMethod.valueOf(method))
			.uri(uri)
			.contentType(MediaType.APPLICATION_JSON);
		if (body != null) {
			request.body(body);
		}
		request.exchange()
			.expectStatus()
			.isEqualTo(status)
			.expectHeader()
			.contentType(MediaType.APPLICATION_PROBLEM_JSON)
			.expectBody()
			.jsonPath("$.detail")
			.value(String.class, (text) -> assertThat(text).contains(detail));
	}

	private long orders() {
		return this.jdbc.sql("select count(*) from orders").query(Long.class).single();
	}

	private void awaitState(Order order, OrderState state) {
		Awaitility.await()
			.atMost(LONG_ENOUGH)
			.pollInterval(Duration.ofMillis(20))
			.until(() -> this.api.order(order.id()).state(), state::equals);
	}

	private DeadLetterController.Entry awaitDeadLetter(Order order) {
		List<DeadLetterController.Entry> letters = Awaitility.await()
			.atMost(LONG_ENOUGH)
			.until(() -> this.api.deadLetters(order.id()), (found) -> !found.isEmpty());
		assertThat(letters).hasSize(1);
		return letters.get(0);
	}

}
