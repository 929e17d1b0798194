package io.pgque.readme;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * README and docs: Java that compiles, links that lead somewhere.
 */
class DocumentationTests {

	private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();

	private static final Pattern JAVA_BLOCK = Pattern.compile("^```java\\R(.*?)^```",
			Pattern.MULTILINE | Pattern.DOTALL);

	private static final Pattern REGION = Pattern
		.compile("// begin (?:README|guide)\\R(.*?)[ \\t]*// end (?:README|guide)", Pattern.DOTALL);

	private static final Pattern LINK = Pattern.compile("]\\(([^)#]+)(#[^)]*)?\\)");

	@ParameterizedTest
	@MethodSource("pages")
	void javaIsCompiled(Path page) throws IOException {
		List<String> compiled = new ArrayList<>();
		for (String source : List.of("src/test/java/io/pgque/readme/QuickStart.java",
				"../pgque-spring-boot-autoconfigure/src/test/java/io/pgque/readme/Guides.java")) {
			find(REGION, Files.readString(Path.of(source))).map(DocumentationTests::withoutIndentation)
				.forEach(compiled::add);
		}
		List<String> shown = find(JAVA_BLOCK, Files.readString(page)).map(DocumentationTests::withoutIndentation)
			.toList();
		assertThat(compiled).containsAll(shown);
	}

	@Test
	void readmeShowsTheWholeQuickStart() throws IOException {
		assertThat(find(JAVA_BLOCK, Files.readString(ROOT.resolve("README.md")))).hasSize(2);
	}

	@ParameterizedTest
	@MethodSource("pages")
	void linksLeadToFiles(Path page) throws IOException {
		assertThat(find(LINK, Files.readString(page)).filter((link) -> !link.contains("://"))
			.map((link) -> page.resolveSibling(link).normalize())).allMatch(Files::exists);
	}

	static List<Path> pages() throws IOException {
		try (Stream<Path> docs = Files.list(ROOT.resolve("docs"))) {
			return Stream.concat(Stream.of(ROOT.resolve("README.md")), docs.sorted())
				.filter((page) -> page.toString().endsWith(".md"))
				.toList();
		}
	}

	private static Stream<String> find(Pattern pattern, String text) {
		return pattern.matcher(text).results().map((result) -> result.group(1));
	}

	/**
	 * Tabs of the source are spaces in the documentation, and what is nested in the
	 * source stands alone there.
	 */
	private static String withoutIndentation(String code) {
		return code.replace("\t", "  ").stripTrailing().stripIndent().replace("static class", "class");
	}

}
