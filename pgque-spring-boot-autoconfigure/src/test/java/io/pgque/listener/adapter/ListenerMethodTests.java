package io.pgque.listener.adapter;

import java.io.IOException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;
import io.pgque.core.PgqueMessage;
import io.pgque.core.SimpleEventTypeResolver;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.PgqueMessageListener;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.support.header.PgqueHeaders;
import kotlin.coroutines.Continuation;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;

import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.converter.MessageConversionException;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.messaging.handler.annotation.support.MethodArgumentNotValidException;
import org.springframework.messaging.handler.invocation.MethodArgumentResolutionException;
import org.springframework.messaging.support.GenericMessage;
import org.springframework.scheduling.annotation.Async;
import org.springframework.validation.Errors;
import org.springframework.validation.Validator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link ListenerMethod}.
 */
class ListenerMethodTests {

	private static final OffsetDateTime SENT = OffsetDateTime.of(2026, 1, 2, 3, 4, 5, 0, ZoneOffset.UTC);

	private static final String ORDER = "{\"id\" : 7, \"total\" : 12.50, \"unknown\" : true}";

	private static final HandlerServices SERVICES = new HandlerServices(new Jackson2MessageConverter(),
			new SimpleEventTypeResolver(), null);

	private final Handlers handlers = new Handlers();

	@Test
	void payloadOfEveryKind() throws Exception {
		assertThat(call("record", ORDER)).containsExactly(new Order(7, new BigDecimal("12.50")));
		assertThat(call("string", ORDER)).containsExactly(ORDER);
		assertThat(call("object", ORDER)).containsExactly(ORDER);
		assertThat(call("bytes", "\u00e9\uD83D\uDE00"))
			.containsExactly("\u00e9\uD83D\uDE00".getBytes(StandardCharsets.UTF_8));
		assertThat(((JsonNode) call("tree", ORDER).get(0)).get("id").asInt()).isEqualTo(7);
		assertThat(call("number", "42")).containsExactly(42);
		assertThat(call("generic", "{\"a\" : [" + ORDER + "]}"))
			.containsExactly(Map.of("a", List.of(new Order(7, new BigDecimal("12.50")))));
		assertThat(call("envelope", "{\"content\" : " + ORDER + "}"))
			.containsExactly(new Envelope<>(new Order(7, new BigDecimal("12.50"))));
		assertThat((Order[]) call("array", "[" + ORDER + "]").get(0))
			.containsExactly(new Order(7, new BigDecimal("12.50")));
		assertThat(call("nothing", ORDER)).containsExactly("called");
	}

	@Test
	void typeVariableOfASuperclass() throws Exception {
		Sub sub = new Sub();
		Method method = Base.class.getDeclaredMethod("handle", Object.class);
		ListenerMethod listener = ListenerMethod.of(() -> sub, method, Sub.class, null);
		assertThat(listener.getPayloadType()).isEqualTo(Order.class);
		((PgqueMessageListener) listener.createListener(SERVICES, null, null)).onMessage(message(ORDER));
		assertThat(sub.handled).containsExactly(new Order(7, new BigDecimal("12.50")));
	}

	@Test
	void messagesAndHeaders() throws Exception {
		PgqueMessage message = message(ORDER);
		List<Object> values = call("everything", ORDER);
		assertThat(values.get(0)).isEqualTo(new Order(7, new BigDecimal("12.50")));
		assertThat(values.get(1)).isEqualTo(message);
		assertThat(values.get(2)).isEqualTo(message);
		assertThat(values.get(3)).isEqualTo(3);
		assertThat(values.get(4)).isEqualTo("acme");
		assertThat(values.get(5)).isEqualTo("fallback");
		assertThat(values.get(6)).isEqualTo(Optional.of("key-1"));
		@SuppressWarnings("unchecked")
		Map<String, Object> headers = (Map<String, Object>) values.get(7);
		assertThat(headers).containsEntry("tenant", "acme")
			.containsEntry(PgqueHeaders.QUEUE, "orders")
			.containsEntry(PgqueHeaders.CONSUMER, "billing")
			.containsEntry(PgqueHeaders.TYPE, "placed")
			.containsEntry(PgqueHeaders.MESSAGE_ID, 11L)
			.containsEntry(PgqueHeaders.BATCH_ID, 22L)
			.containsEntry(PgqueHeaders.CREATED_AT, SENT)
			.containsEntry(PgqueHeaders.EXTRA2, "second")
			.doesNotContainKey(PgqueHeaders.EXTRA3);
		assertThat(((MessageHeaders) values.get(8)).getTimestamp()).isEqualTo(SENT.toInstant().toEpochMilli());
		assertThat(((Message<?>) values.get(9)).getPayload()).isEqualTo(new Order(7, new BigDecimal("12.50")));
		assertThat(((Message<?>) values.get(10)).getPayload()).isEqualTo(ORDER);
	}

	@Test
	void missingPayload() throws Exception {
		assertThat(call("optional", null)).containsExactly((Object) null);
		assertThat(call("nullable", null)).containsExactly((Object) null);
		assertThat(call("received", null)).hasSize(1);
		for (String method : List.of("string", "record", "number", "springMessage")) {
			assertThatExceptionOfType(MethodArgumentResolutionException.class).isThrownBy(() -> call(method, null))
				.withMessageContaining("message 11 of queue 'orders' has no payload");
		}
	}

	@Test
	void whatDoesNotFitFailsAsSuch() {
		assertThatExceptionOfType(MessageConversionException.class).isThrownBy(() -> call("record", "no JSON"))
			.withMessageContaining("11")
			.withMessageContaining("orders");
		assertThatExceptionOfType(MethodArgumentResolutionException.class)
			.isThrownBy(() -> call("missingHeader", ORDER))
			.withMessageContaining("absent");
		assertThatExceptionOfType(MethodArgumentResolutionException.class).isThrownBy(() -> call("wrongHeader", ORDER))
			.withMessageContaining("wrongHeader");
	}

	@Test
	void whatTheMethodThrowsIsNotWrapped() {
		assertThatExceptionOfType(IOException.class).isThrownBy(() -> call("fails", "IOException"));
		assertThatExceptionOfType(IllegalArgumentException.class).isThrownBy(() -> call("fails", "Illegal"))
			.withMessage("own");
		assertThatExceptionOfType(NoClassDefFoundError.class).isThrownBy(() -> call("fails", "Error"));
	}

	@Test
	void validatedPayloads() throws Exception {
		HandlerServices validating = new HandlerServices(new Jackson2MessageConverter(), new SimpleEventTypeResolver(),
				new OrderValidator());
		PgqueMessageListener single = (PgqueMessageListener) listener(Handlers.class, "valid")
			.createListener(validating, null, null);
		single.onMessage(message(ORDER));
		assertThat(this.handlers.values).containsExactly(new Order(7, new BigDecimal("12.50")));
		assertThatExceptionOfType(MethodArgumentNotValidException.class)
			.isThrownBy(() -> single.onMessage(message("{\"id\" : -1}")))
			.withMessageContaining("id must be positive");
		single.onMessage(message(null));
		PgqueMessageListener spring = (PgqueMessageListener) listener(Handlers.class, "validMessage")
			.createListener(validating, null, null);
		assertThatExceptionOfType(MethodArgumentNotValidException.class)
			.isThrownBy(() -> spring.onMessage(message("{\"id\" : -1}")));
		for (String method : List.of("valid", "validMessage", "validList", "validElements")) {
			assertThatExceptionOfType(InvalidListenerException.class)
				.isThrownBy(() -> listener(Handlers.class, method).createListener(SERVICES, null, null))
				.withMessageContaining(Handlers.class.getName() + "." + method + "(")
				.withMessageContaining("there is no Validator");
		}
	}

	@Test
	void payloadTypes() {
		assertThat(listener(Handlers.class, "record").getPayloadType()).isEqualTo(Order.class);
		assertThat(listener(Handlers.class, "springMessage").getPayloadType()).isEqualTo(Order.class);
		for (String method : List.of("nothing", "object", "received", "rawMessage")) {
			assertThat(listener(Handlers.class, method).getPayloadType()).isNull();
		}
	}

	@ParameterizedTest
	@ValueSource(
			strings = { "twoPayloads", "mixed", "streams", "stream", "optionalPayload", "otherMessage", "headersNoMap",
					"expression", "future", "completable", "publisher", "reactive", "suspend", "async", "sendTo" })
	void whatCannotWorkIsRefusedWithTheSignature(String method) {
		assertThatExceptionOfType(InvalidListenerException.class).isThrownBy(() -> listener(Refused.class, method))
			.withMessageContaining(Refused.class.getName() + "." + method + "(")
			.satisfies((ex) -> assertThat(ex.getRemedy()).isNotEmpty());
	}

	@Test
	void asynchronousClassIsRefused() {
		assertThatExceptionOfType(InvalidListenerException.class)
			.isThrownBy(() -> listener(AsynchronousClass.class, "handle"))
			.withMessageContaining("settled before they are handled");
	}

	private List<Object> call(String method, @Nullable String payload) throws Exception {
		this.handlers.values.clear();
		((PgqueMessageListener) listener(Handlers.class, method).createListener(SERVICES, null, null))
			.onMessage(message(payload));
		return this.handlers.values;
	}

	private ListenerMethod listener(Class<?> type, String name) {
		Method method = Stream.of(type.getDeclaredMethods())
			.filter((candidate) -> candidate.getName().equals(name))
			.findFirst()
			.orElseThrow();
		return ListenerMethod.of(() -> this.handlers, method, type, null);
	}

	private static PgqueMessage message(@Nullable String payload) {
		return new PgqueMessage(11, 22, "orders", "billing", "placed", payload, 2, SENT, "key-1", "second", null,
				"{\"tenant\" : \"acme\"}", Map.of("tenant", "acme"));
	}

	record Order(long id, BigDecimal total) {
	}

	record Envelope<T>(T content) {
	}

	static class Base<T> {

		final List<Object> handled = new ArrayList<>();

		void handle(T payload) {
			this.handled.add(payload);
		}

	}

	static class Sub extends Base<Order> {

	}

	static class Handlers {

		private final List<Object> values = new ArrayList<>();

		private void keep(@Nullable Object... arguments) {
			for (Object argument : arguments) {
				this.values.add(argument);
			}
		}

		void record(Order order) {
			keep(order);
		}

		void string(String text) {
			keep(text);
		}

		void object(Object payload) {
			keep(payload);
		}

		void bytes(byte[] bytes) {
			keep((Object) bytes);
		}

		void tree(JsonNode tree) {
			keep(tree);
		}

		void number(int number) {
			keep(number);
		}

		void generic(Map<String, List<Order>> orders) {
			keep(orders);
		}

		void envelope(Envelope<Order> envelope) {
			keep(envelope);
		}

		void array(Order[] orders) {
			keep((Object) orders);
		}

		void nothing() {
			keep("called");
		}

		void optional(@Payload(required = false) String text) {
			keep((Object) text);
		}

		void nullable(@Nullable Order order) {
			keep((Object) order);
		}

		void received(ReceivedMessage message) {
			keep(message);
		}

		void springMessage(Message<Order> message) {
			keep(message);
		}

		void rawMessage(Message<?> message) {
			keep(message);
		}

		void everything(@Payload Order order, PgqueMessage message, ReceivedMessage received,
				@Header(PgqueHeaders.DELIVERY_ATTEMPT) int attempt, @Header String tenant,
				@Header(name = "absent", defaultValue = "fallback") String absent,
				@Header(PgqueHeaders.KEY) Optional<String> key, @Headers Map<String, Object> headers,
				MessageHeaders messageHeaders, Message<Order> typed, Message<?> raw) {
			keep(order, message, received, attempt, tenant, absent, key, headers, messageHeaders, typed, raw);
		}

		void valid(@Valid @Payload(required = false) Order order) {
			keep(order);
		}

		void validMessage(@Valid Message<Order> message) {
			keep(message);
		}

		void validList(@Valid List<Order> orders) {
			keep(orders);
		}

		void validElements(List<@Valid Order> orders) {
			keep(orders);
		}

		void missingHeader(@Header("absent") String absent) {
			keep(absent);
		}

		void wrongHeader(@Header("tenant") int number) {
			keep(number);
		}

		int fails(String how) throws IOException {
			switch (how) {
				case "IOException" -> throw new IOException();
				case "Illegal" -> throw new IllegalArgumentException("own");
				default -> throw new NoClassDefFoundError();
			}
		}

	}

	@SuppressWarnings("unused")
	static class Refused {

		void twoPayloads(String first, Order second) {
		}

		void mixed(List<String> payloads, @Header("tenant") String tenant) {
		}

		void streams(List<Stream<String>> payloads) {
		}

		void stream(Stream<String> payloads) {
		}

		void optionalPayload(Optional<String> payload) {
		}

		void otherMessage(GenericMessage<String> message) {
		}

		void headersNoMap(@Headers String headers) {
		}

		Mono<String> reactive(String payload) {
			return new Mono<>();
		}

		Object suspend(String payload, Continuation<? super String> continuation) {
			return payload;
		}

		void expression(@Payload("id") String id) {
		}

		Future<Void> future(String payload) {
			return CompletableFuture.completedFuture(null);
		}

		CompletableFuture<Void> completable(String payload) {
			return CompletableFuture.completedFuture(null);
		}

		Flow.@Nullable Publisher<String> publisher(String payload) {
			return null;
		}

		@Async
		void async(String payload) {
		}

		@SendTo("elsewhere")
		void sendTo(String payload) {
		}

	}

	@Retention(RetentionPolicy.RUNTIME)
	@Target({ ElementType.PARAMETER, ElementType.TYPE_USE })
	@interface Valid {

	}

	@Async
	static class AsynchronousClass {

		void handle(String payload) {
		}

	}

	static class OrderValidator implements Validator {

		@Override
		public boolean supports(Class<?> type) {
			return type == Order.class;
		}

		@Override
		public void validate(Object target, Errors errors) {
			if (((Order) target).id() < 0) {
				errors.reject("positive", "id must be positive");
			}
		}

	}

	static class Mono<T> implements Publisher<T> {

	}

}
