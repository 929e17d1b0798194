package io.pgque.core;

import java.math.BigDecimal;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link SimpleEventTypeResolver}.
 */
class SimpleEventTypeResolverTests {

	private final SimpleEventTypeResolver resolver = new SimpleEventTypeResolver();

	@Test
	void applicationClassGoesByItsSimpleName() {
		assertThat(this.resolver.resolve(OrderPlaced.class)).isEqualTo("OrderPlaced");
		assertThat(this.resolver.resolve(Size.class)).isEqualTo("Size");
		assertThat(this.resolver.resolve(Size.LARGE.getClass())).isEqualTo("Size");
		assertThat(this.resolver.resolve(new OrderPlaced() {
		}.getClass())).isEqualTo("OrderPlaced");
	}

	@Test
	void whatOtherLanguagesSendIsDefault() {
		assertThat(List.of("", new byte[0], Map.of(), List.of(), new int[0], 1, true, BigDecimal.ONE, Instant.EPOCH,
				new OrderPlaced[0], new Lines(), new Object() {
				}, com.fasterxml.jackson.databind.node.NullNode.getInstance(),
				tools.jackson.databind.node.NullNode.getInstance()))
			.extracting((payload) -> this.resolver.resolve(payload.getClass()))
			.containsOnly("default");
		assertThat(this.resolver.resolve(null)).isEqualTo("default");
	}

	static class OrderPlaced {

	}

	@SuppressWarnings("serial")
	static class Lines extends ArrayList<String> {

	}

	enum Size {

		SMALL,

		LARGE {
		}

	}

}
