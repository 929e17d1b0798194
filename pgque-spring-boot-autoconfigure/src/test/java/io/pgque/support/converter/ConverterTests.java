package io.pgque.support.converter;

import java.math.BigDecimal;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.pgque.support.ReceivedMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.cfg.DateTimeFeature;
import tools.jackson.databind.json.JsonMapper;

import org.springframework.core.ResolvableType;
import org.springframework.messaging.converter.MessageConversionException;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link Jackson2MessageConverter} and {@link Jackson3MessageConverter}.
 */
class ConverterTests {

	/**
	 * What both write, byte for byte. Changing it breaks messages that wait in a queue.
	 */
	private static final String GOLDEN = """
			{"amount":12.50,"at":"2026-03-04T05:06:07.000000008Z","buyer":{"name":"J\u00fcrgen \ud83d\ude00",\
			"id":"0f0e0d0c-0b0a-0908-0706-050403020100"},"day":"2026-03-04","lines":[{"sku":"a/\\"b\\"","count":2}],\
			"link":"https://example.org","note":null,"placedAt":"2026-03-04T05:06:07+02:00","priority":"HIGH",\
			"tags":{"z":1,"a":2},"took":"PT1.5S"}""";

	private static final Order ORDER = new Order(new BigDecimal("12.50"),
			Instant.parse("2026-03-04T05:06:07.000000008Z"),
			new Buyer("J\u00fcrgen \ud83d\ude00", UUID.fromString("0f0e0d0c-0b0a-0908-0706-050403020100")),
			LocalDate.of(2026, 3, 4), List.of(new Line("a/\"b\"", 2)), URI.create("https://example.org"),
			Optional.empty(), OffsetDateTime.of(2026, 3, 4, 5, 6, 7, 0, ZoneOffset.ofHours(2)), Priority.HIGH, tags(),
			Duration.ofMillis(1500));

	static Stream<PgqueMessageConverter> converters() {
		return Stream.of(new Jackson2MessageConverter(), new Jackson3MessageConverter(JsonMapper.shared()),
				new Jackson3MessageConverter(JsonMapper.builder()
					.enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
					.enable(DateTimeFeature.WRITE_DATES_AS_TIMESTAMPS, DateTimeFeature.WRITE_DURATIONS_AS_TIMESTAMPS)
					.build()));
	}

	@ParameterizedTest
	@MethodSource("converters")
	void writesTheGoldenText(PgqueMessageConverter converter) {
		assertThat(converter.toText(ORDER)).isEqualTo(GOLDEN);
	}

	@ParameterizedTest
	@MethodSource("converters")
	void readsTheGoldenText(PgqueMessageConverter converter) {
		assertThat(converter.fromText(message(GOLDEN), Order.class)).isEqualTo(ORDER);
	}

	@ParameterizedTest
	@MethodSource("converters")
	void ignoresUnknownFields(PgqueMessageConverter converter) {
		assertThat(converter.fromText(message("{\"sku\":\"x\",\"count\":1,\"new\":[{}]}"), Line.class))
			.isEqualTo(new Line("x", 1));
	}

	@ParameterizedTest
	@MethodSource("converters")
	void readsGenericTypes(PgqueMessageConverter converter) {
		assertThat(converter.fromText(message("[{\"sku\":\"x\",\"count\":1}]"),
				ResolvableType.forClassWithGenerics(List.class, Line.class).getType()))
			.isEqualTo(List.of(new Line("x", 1)));
		assertThat(converter.fromText(message("{\"a\":1}"), Map.class)).isEqualTo(Map.of("a", 1));
	}

	@ParameterizedTest
	@MethodSource("converters")
	void passesTextThrough(PgqueMessageConverter converter) {
		for (String text : List.of("", " { \"b\" : 1,\r\n\t\"a\":01 } ", "null", "\u00e4\ud83d\ude00\u0001\\u0000")) {
			assertThat(converter.toText(text)).isSameAs(text);
			assertThat(converter.fromText(message(text), String.class)).isSameAs(text);
			assertThat(converter.fromText(message(text), Object.class)).isSameAs(text);
			assertThat((byte[]) converter.fromText(message(text), byte[].class))
				.isEqualTo(text.getBytes(StandardCharsets.UTF_8));
			assertThat(converter.toText(text.getBytes(StandardCharsets.UTF_8))).isEqualTo(text);
		}
		assertThat(converter.toText(null)).isNull();
		assertThat(converter.fromText(message(null), Order.class)).isNull();
	}

	@ParameterizedTest
	@MethodSource("converters")
	void refusesBytesThatAreNoText(PgqueMessageConverter converter) {
		assertThatExceptionOfType(MessageConversionException.class)
			.isThrownBy(() -> converter.toText(new byte[] { (byte) 0xff, 0 }))
			.withMessageContaining("UTF-8")
			.withMessageContaining("Base64");
	}

	@ParameterizedTest
	@MethodSource("converters")
	void saysWhatCannotBeRead(PgqueMessageConverter converter) {
		for (String text : List.of("{", "{\"sku\":\"x\",\"count\":\"many\"}", "{\"sku\":\"x\",\"count\":1} trailing",
				"[]", "")) {
			assertThatExceptionOfType(MessageConversionException.class)
				.isThrownBy(() -> converter.fromText(message(text), Line.class))
				.withMessageContaining("Message 42 of queue 'orders' with type 'Line'")
				.withMessageContaining(Line.class.getName())
				.havingCause();
		}
	}

	@ParameterizedTest
	@MethodSource("converters")
	void saysWhatCannotBeWritten(PgqueMessageConverter converter) {
		List<Object> circle = new ArrayList<>();
		circle.add(new Broken());
		assertThatExceptionOfType(MessageConversionException.class).isThrownBy(() -> converter.toText(circle))
			.withMessageContaining(ArrayList.class.getName())
			.withMessageContaining("broken");
	}

	@Test
	void leavesTheApplicationsMapperAlone() throws Exception {
		ObjectMapper mapper = new ObjectMapper();
		new Jackson2MessageConverter(mapper);
		assertThat(mapper.isEnabled(com.fasterxml.jackson.databind.SerializationFeature.WRITE_DATES_AS_TIMESTAMPS))
			.isTrue();
	}

	private static Map<String, Integer> tags() {
		Map<String, Integer> tags = new LinkedHashMap<>();
		tags.put("z", 1);
		tags.put("a", 2);
		return tags;
	}

	private static ReceivedMessage message(String payload) {
		return new ReceivedMessage() {

			@Override
			public long id() {
				return 42;
			}

			@Override
			public String queue() {
				return "orders";
			}

			@Override
			public String consumer() {
				return "billing";
			}

			@Override
			public String type() {
				return "Line";
			}

			@Override
			public String payload() {
				return payload;
			}

			@Override
			public int deliveryAttempt() {
				return 1;
			}

			@Override
			public OffsetDateTime createdAt() {
				return OffsetDateTime.MIN;
			}

			@Override
			public Map<String, String> headers() {
				return Map.of();
			}

		};
	}

	record Order(BigDecimal amount, Instant at, Buyer buyer, LocalDate day, List<Line> lines, URI link,
			Optional<String> note, OffsetDateTime placedAt, Priority priority, Map<String, Integer> tags,
			Duration took) {

		@Override
		public boolean equals(Object other) {
			// Jackson reads an offset as the same instant in UTC.
			return other instanceof Order order && order.placedAt.isEqual(this.placedAt)
					&& order.withoutTime().toString().equals(withoutTime().toString());
		}

		@Override
		public int hashCode() {
			return this.amount.hashCode();
		}

		private Order withoutTime() {
			return new Order(this.amount, this.at, this.buyer, this.day, this.lines, this.link, this.note,
					OffsetDateTime.MIN, this.priority, this.tags, this.took);
		}

	}

	record Buyer(String name, UUID id) {
	}

	record Line(String sku, int count) {
	}

	enum Priority {

		LOW, HIGH

	}

	static class Broken {

		public String getValue() {
			throw new IllegalStateException("broken");
		}

	}

}
