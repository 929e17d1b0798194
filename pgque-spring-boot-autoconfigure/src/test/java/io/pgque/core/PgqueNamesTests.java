package io.pgque.core;

import io.pgque.InvalidNameException;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link PgqueNames}.
 */
class PgqueNamesTests {

	@Test
	void bytesCountNotCharacters() {
		String possible = "x".repeat(57);
		assertThat(PgqueNames.requireQueue(possible)).isSameAs(possible);
		assertThat(PgqueNames.requireQueue("\ud83d\ude00".repeat(14) + "x")).hasSize(29);
		assertThatExceptionOfType(InvalidNameException.class).isThrownBy(() -> PgqueNames.requireQueue(possible + "x"))
			.withMessageContaining(possible + "x")
			.withMessageContaining("has 58 bytes of UTF-8, at most 57 are possible");
		assertThatExceptionOfType(InvalidNameException.class)
			.isThrownBy(() -> PgqueNames.requireQueue("\u00e9".repeat(3) + "x".repeat(54)))
			.withMessageContaining("60 bytes");
	}

	@Test
	void anythingElseGoes() {
		for (String name : new String[] { "MiXed", "a-b", "a.b", "a'b", "a\"b", " ", "\u00e9\ud83d\ude00" }) {
			assertThat(PgqueNames.requireQueue(name)).isSameAs(name);
			assertThat(PgqueNames.requireConsumer(name)).isSameAs(name);
		}
		assertThat(PgqueNames.requireConsumer("x".repeat(1000))).hasSize(1000);
	}

	@Test
	void missingNameIsTold() {
		assertThatExceptionOfType(InvalidNameException.class).isThrownBy(() -> PgqueNames.requireQueue(null))
			.withMessageContaining("queue name is missing");
		assertThatExceptionOfType(InvalidNameException.class).isThrownBy(() -> PgqueNames.requireConsumer(""))
			.withMessageContaining("consumer name is missing");
	}

	@Test
	void impossibleCharactersAreTold() {
		assertThatExceptionOfType(InvalidNameException.class).isThrownBy(() -> PgqueNames.requireQueue("a\0"))
			.withMessageContaining("NUL character at index 1");
		assertThatExceptionOfType(InvalidNameException.class).isThrownBy(() -> PgqueNames.requireConsumer("a#0"))
			.withMessageContaining("a#0")
			.withMessageContaining("reserved");
	}

}
