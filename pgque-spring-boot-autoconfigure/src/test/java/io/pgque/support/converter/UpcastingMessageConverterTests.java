package io.pgque.support.converter;

import java.io.IOException;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;

import io.pgque.core.PgqueMessage;
import io.pgque.support.ReceivedMessage;
import io.pgque.support.header.PgqueHeaders;
import org.junit.jupiter.api.Test;

import org.springframework.messaging.converter.MessageConversionException;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/**
 * Tests for {@link UpcastingMessageConverter}.
 */
class UpcastingMessageConverterTests {

	private final UpcastingMessageConverter converter = new UpcastingMessageConverter(new Jackson2MessageConverter(),
			List.of(new Replacing("order.placed", 1, "\"name\"", "\"customer\""),
					new Replacing("order.placed", 2, "}", ",\"currency\":\"EUR\"}"),
					new Replacing("other", 1, "name", "never")));

	private static ReceivedMessage message(String type, String version, String payload) {
		return new PgqueMessage(7, 1, "orders", "c", type, payload, null, OffsetDateTime.now(), null, null, null, null,
				(version != null) ? Map.of(PgqueHeaders.SCHEMA_VERSION, version) : Map.of());
	}

	@Test
	void bringsPayloadsForwardFromWhereTheyStand() {
		Order expected = new Order("Ada", "EUR");
		assertThat(this.converter.fromText(message("order.placed", null, "{\"name\":\"Ada\"}"), Order.class))
			.isEqualTo(expected);
		assertThat(this.converter.fromText(message("order.placed", "2", "{\"customer\":\"Ada\"}"), Order.class))
			.isEqualTo(expected);
		assertThat(this.converter.fromText(message("order.placed", "3", "{\"customer\":\"Ada\",\"currency\":\"EUR\"}"),
				Order.class))
			.isEqualTo(expected);
		assertThat(this.converter.fromText(message("unknown", null, "{\"customer\":\"name\"}"), Order.class))
			.isEqualTo(new Order("name", null));
		assertThat(this.converter.fromText(message("order.placed", null, null), Order.class)).isNull();
		assertThat(this.converter.fromText(message(null, null, "x"), String.class)).isEqualTo("x");
		assertThat(this.converter.toText(expected)).isEqualTo("{\"customer\":\"Ada\",\"currency\":\"EUR\"}");
	}

	@Test
	void whatCannotBeBroughtForwardCannotBeConverted() {
		assertThatExceptionOfType(MessageConversionException.class)
			.isThrownBy(() -> this.converter.fromText(message("order.placed", "1", "broken"), Order.class))
			.withMessageContaining("Message 7 of queue 'orders'")
			.withMessageContaining("schema version 1")
			.withCauseInstanceOf(IOException.class);
		assertThatExceptionOfType(MessageConversionException.class)
			.isThrownBy(() -> this.converter.fromText(message("order.placed", "new", "{}"), Order.class))
			.withMessageContaining("'new'");
	}

	@Test
	void oneStepIsOneUpcasters() {
		assertThatIllegalArgumentException()
			.isThrownBy(() -> new UpcastingMessageConverter(new Jackson2MessageConverter(),
					List.of(new Replacing("a", 1, "", ""), new Replacing("a", 1, "", ""))))
			.withMessageContaining("two upcasters of event type 'a' from version 1");
	}

	record Order(String customer, String currency) {
	}

	record Replacing(String type, int fromVersion, String what, String by) implements PayloadUpcaster {

		@Override
		public String upcast(String payload, ReceivedMessage message) throws IOException {
			if (!payload.startsWith("{")) {
				throw new IOException("not an object");
			}
			return payload.replace(this.what, this.by);
		}

	}

}
