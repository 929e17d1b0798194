package io.pgque.support.header;

import java.util.LinkedHashMap;
import java.util.Map;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link HeaderCodec}.
 */
class HeaderCodecTests {

	@Test
	void writesFlatObjectOfStrings() {
		Map<String, String> headers = new LinkedHashMap<>();
		headers.put("traceparent", "00-a\"b-01");
		headers.put("n\u00e4me", "\ud83d\ude00\n");
		String text = HeaderCodec.encode(headers);
		assertThat(text).isEqualTo("{\"traceparent\":\"00-a\\\"b-01\",\"n\u00e4me\":\"\ud83d\ude00\\n\"}");
		assertThat(HeaderCodec.decode(text)).containsExactlyEntriesOf(headers);
	}

	@Test
	void writesNothingForNothing() {
		assertThat(HeaderCodec.encode(Map.of())).isNull();
	}

	@Test
	void readsWhatOthersWrite() {
		assertThat(HeaderCodec.decode("{\"a\":1,\"b\":true,\"c\":null,\"d\":{\"x\":[1]},\"e\":\"f\"}"))
			.containsExactly(Map.entry("a", "1"), Map.entry("b", "true"), Map.entry("e", "f"));
	}

	@ParameterizedTest
	@NullSource
	@ValueSource(strings = { "", "text", "[1]", "\"a\"", "{\"a\":\"b\"", "{\"a\" 1}", "null", "{broken" })
	void somebodyElsesColumnHasNoHeaders(String text) {
		assertThat(HeaderCodec.decode(text)).isEmpty();
	}

}
