package io.pgque.boot;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.StreamSupport;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for the metadata of {@link PgqueProperties}, which an IDE shows: what is in
 * {@code properties.txt} is what applications rely on.
 */
class ConfigurationMetadataTests {

	@Test
	void namesTypesAndDefaultsAreTheAgreedOnes() throws IOException {
		List<String> actual = properties().stream()
			.map((property) -> property.path("name").asText() + " = " + property.path("defaultValue").asText("-") + " ("
					+ simpleName(property.path("type").asText()) + ")")
			.sorted()
			.toList();
		assertThat(String.join("\n", actual)).isEqualTo(golden());
	}

	@Test
	void everyPropertyIsDescribed() throws IOException {
		assertThat(properties()).isNotEmpty()
			.allSatisfy(
					(property) -> assertThat(property.path("description").asText()).as(property.path("name").asText())
						.matches("[A-Z].*\\."));
	}

	private List<JsonNode> properties() throws IOException {
		try (InputStream file = getClass().getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
			JsonNode metadata = new ObjectMapper().readTree(file);
			return StreamSupport.stream(metadata.path("properties").spliterator(), false).toList();
		}
	}

	private String golden() throws IOException {
		try (InputStream file = getClass().getResourceAsStream("properties.txt")) {
			return new String(file.readAllBytes(), StandardCharsets.UTF_8).stripTrailing();
		}
	}

	private static String simpleName(String type) {
		return type.replaceAll("[\\w.$]+[.$](\\w+)", "$1");
	}

}
